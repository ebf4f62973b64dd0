"""FSDP2, `fully_shard`, with torch.optim.Adam or AdamW: stages 2 and 3 in fp32 and bf16.

Each unit is a group of its own, units that share a parameter are one, as the documentation asks
for, and the root takes what is in no unit. Without resharding after forward it is stage 2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.nn.utils import clip_grad_norm_

from zeroproof_adapter.torch_models import Unit
from zeroproof_adapter.torch_subject import Piece, TorchSubject, gathered, local
from zeroproof_adapter.torch_tools import adam
from zeroproof_adapter.trainer import Rejected

PACKAGES = ["torch"]


def version() -> str:
    return str(torch.__version__).split("+")[0]


class Fsdp2(TorchSubject):
    name = "fsdp2"
    stages = frozenset({2, 3})
    precisions = frozenset({"fp32", "bf16"})
    options = frozenset({
        "reshard_after_forward", "set_modules_to_forward_prefetch",
        "set_modules_to_backward_prefetch", "set_force_sum_reduction_for_comms",
        "set_reduce_scatter_max_input_buffers",
    })  # fmt: skip
    mesh: DeviceMesh | None = None  # of all ranks, one for all cases
    placed: Sequence[Piece] | None = None

    def wrap(self) -> None:
        for p in self.case.parameters:
            if not p.shape:
                raise Rejected(f"fully_shard does not support scalar parameters, as {p.name} is")
        if Fsdp2.mesh is None:
            Fsdp2.mesh = init_device_mesh("cpu", (self.ranks,))
        settings: dict[str, Any] = {
            "mesh": Fsdp2.mesh,
            "reshard_after_forward": self._reshard_after_forward(),
        }
        if self.case.precision == "bf16":
            settings["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
        for units in connected(self.model.units()):
            if len(units) > 1:
                fully_shard(cast("list[nn.Module]", units), **settings)
            else:
                fully_shard(units[0], **settings)
        root = fully_shard(self.model, **settings)
        # Ranks and micro-steps may leave parameters out.
        root.set_reduce_scatter_unused_params(True)
        self._set_options(root)
        self.root, self.module = root, self.model
        self.optimizer = adam(self.case, self.model.weights())

    def _reshard_after_forward(self) -> bool | int:
        """A number of ranks is legal if it divides N and is neither 1 nor N."""
        value = self.case.options.get("reshard_after_forward", True)
        if self.case.stage == 2:
            return False
        if not isinstance(value, bool) and (value in (1, self.ranks) or self.ranks % value):
            return True
        return cast("bool | int", value)

    def _set_options(self, root: FSDPModule) -> None:
        options = self.case.options
        units = [cast(FSDPModule, unit) for unit in self.model.units()]
        if options.get("set_modules_to_forward_prefetch"):
            for unit, following in zip(units, units[1:]):
                unit.set_modules_to_forward_prefetch([following])
        if options.get("set_modules_to_backward_prefetch"):
            for unit, before in zip(units[1:], units):
                unit.set_modules_to_backward_prefetch([before])
        if "set_reduce_scatter_max_input_buffers" in options:
            root.set_reduce_scatter_max_input_buffers(
                options["set_reduce_scatter_max_input_buffers"]
            )
        if options.get("set_force_sum_reduction_for_comms"):
            for module in (root, *units):
                module.set_force_sum_reduction_for_comms(True)

    def _begin(self, weight: DTensor) -> int:
        """Where in the parameter, row by row, the local shard begins."""
        _, offset = compute_local_shape_and_global_offset(
            weight.shape, weight.device_mesh, weight.placements
        )
        row = weight.numel() // weight.shape[0] if weight.shape[0] else 0
        return int(offset[0]) * row

    def pieces(self) -> Sequence[Piece]:
        if self.placed is None:
            self.placed = [
                Piece(name, self._begin(cast(DTensor, weight)), weight)
                for name, weight in self.parameters.items()
            ]
        names = self.in_optimizer()
        return [piece for piece in self.placed if piece.name in names]

    def weights(self) -> Mapping[str, Tensor]:
        # Without the library: its own gather would leave a part of the model unsharded or not.
        self.pieces()
        assert self.placed is not None
        return gathered(
            self.case,
            (
                (p.name, p.begin, cast(Tensor, local(p.parameter)).to(self.dtype))
                for p in self.placed
            ),
        )

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        self.root.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.root.set_requires_gradient_sync(True)

    def clip_gradients(self, bound: float) -> float:
        norm = clip_grad_norm_(self.in_optimizer().values(), bound)
        return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def parameter_storages(self) -> Iterable[Tensor | None]:
        """Shards, and the gathered parameters that are not freed, which only the library's lists
        show."""
        yield from super().parameter_storages()
        for group in self._groups():
            for p in group.fsdp_params:
                yield from getattr(p, "all_gather_outputs", ())

    def gradient_storages(self) -> Iterable[Tensor | None]:
        yield from super().gradient_storages()
        for group in self._groups():
            yield from (p.unsharded_accumulated_grad for p in group.fsdp_params)

    def buffers(self) -> Iterable[Tensor | None]:
        for group in self._groups():
            context = group.comm_ctx  # made at the first forward pass
            if (gather := getattr(context, "all_gather_state", None)) is not None:
                yield gather.all_gather_result.all_gather_output
            yield from (
                state.reduce_scatter_input
                for state in getattr(context, "reduce_scatter_states", ())
            )

    def _groups(self) -> list[Any]:
        states = {
            id(state): state
            for module in self.model.modules()
            if isinstance(module, FSDPModule) and (state := module._get_fsdp_state())
        }
        return [group for state in states.values() for group in state._fsdp_param_groups]

    def save(self, folder: Path) -> None:
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        model, optimizer = get_state_dict(self.model, self.optimizer, options=options)
        if self.rank == 0:
            torch.save((model, optimizer, self.counts()), folder / "checkpoint.pt")
        dist.barrier()

    def load(self, folder: Path) -> None:
        model, optimizer, counts = torch.load(folder / "checkpoint.pt")
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=model,
            optim_state_dict=optimizer,
            options=StateDictOptions(full_state_dict=True),
        )
        self.restore(counts)


def connected(units: Iterable[Unit]) -> list[list[Unit]]:
    """Units that have a parameter, in sets of those that share one."""
    sets: list[tuple[set[str], list[Unit]]] = []
    for unit in units:
        names, members = set(unit.names), [unit]
        for other in [s for s in sets if s[0] & names]:
            sets.remove(other)
            names, members = other[0] | names, other[1] + members
        if names:
            sets.append((names, members))
    return [sorted(members, key=lambda unit: unit.index) for _, members in sets]


TRAINER = Fsdp2
