"""FSDP1, `FullyShardedDataParallel`, with torch.optim.Adam or AdamW: SHARD_GRAD_OP as stage 2 and
FULL_SHARD as stage 3, in fp32 and bf16.

Each unit is an instance of its own; units that share a parameter belong to the root, since FSDP1
supports shared parameters within one instance only.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp import (
    BackwardPrefetch,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817
from torch.distributed.fsdp.wrap import CustomPolicy

from zeroproof_adapter.subjects.fsdp2 import connected, version
from zeroproof_adapter.torch_subject import Piece, TorchSubject, gathered
from zeroproof_adapter.torch_tools import adam
from zeroproof_adapter.trainer import Actions, Rejected

PACKAGES = ["torch"]

__all__ = ["PACKAGES", "TRAINER", "version"]

STRATEGIES = {2: ShardingStrategy.SHARD_GRAD_OP, 3: ShardingStrategy.FULL_SHARD}


class Fsdp1(TorchSubject):
    name = "fsdp1"
    stages = frozenset({2, 3})
    precisions = frozenset({"fp32", "bf16"})
    options = frozenset({
        "backward_prefetch", "forward_prefetch", "limit_all_gathers", "sync_module_states",
        "offload_to_cpu",
    })  # fmt: skip
    module: FSDP
    # clip_grad_norm_ is over all parameters of the module, in the optimizer or not.
    add_group = Actions.add_group

    def wrap(self) -> None:
        if not any(p.elements for p in self.case.parameters):
            raise Rejected("FullyShardedDataParallel wants a parameter with elements")
        wrapped = {units[0] for units in connected(self.model.units()) if len(units) == 1}
        options = self.case.options
        settings: dict[str, Any] = {
            "sharding_strategy": STRATEGIES[self.case.stage],
            "auto_wrap_policy": CustomPolicy(lambda module: module in wrapped),
            "device_id": torch.device("cpu"),
            "use_orig_params": True,
            "forward_prefetch": options.get("forward_prefetch", False),
            "limit_all_gathers": options.get("limit_all_gathers", True),
            "sync_module_states": options.get("sync_module_states", False),
        }
        prefetch = options.get("backward_prefetch", "BACKWARD_PRE")
        settings["backward_prefetch"] = BackwardPrefetch[prefetch] if prefetch else None
        if self.case.precision == "bf16":
            settings["mixed_precision"] = MixedPrecision(
                param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on a CPU, and with one rank as NO_SHARD
            self.module = FSDP(self.model, **settings)
        self.optimizer = adam(self.case, self.model.weights())

    def _flat(self) -> list[Any]:
        """The flat parameters, which alone tell what of a parameter a rank has."""
        return [
            module._handle.flat_param
            for module in FSDP.fsdp_modules(self.module)
            if module._handle is not None
        ]

    def pieces(self) -> Sequence[Piece]:
        names = self.in_optimizer()
        return [piece for piece in self._placed() if piece.name in names]

    def _placed(self) -> Iterator[Piece]:
        by_id = {id(weight): name for name, weight in self.parameters.items()}
        for flat in self._flat():
            for weight, shard in zip(flat._params, flat._shard_param_infos):
                if shard.in_shard:
                    yield Piece(by_id[id(weight)], shard.intra_param_start_idx, weight)

    def has_gradient(self, name: str) -> bool:
        # A rank without elements of the parameter has no gradient of it, but of the flat one.
        weight = self.parameters[name]
        return any(
            flat.grad is not None and any(weight is p for p in flat._params)
            for flat in self._flat()
        )

    def weights(self) -> Mapping[str, Tensor]:
        pieces = list(self._placed())
        if self.ranks == 1:
            return {p.name: p.parameter.to(self.dtype) for p in pieces}
        return gathered(self.case, ((p.name, p.begin, p.parameter.to(self.dtype)) for p in pieces))

    def accumulate(self) -> contextlib.AbstractContextManager[Any]:
        return cast("contextlib.AbstractContextManager[Any]", self.module.no_sync())

    def clip_gradients(self, bound: float) -> float:
        return float(self.module.clip_grad_norm_(bound))

    def scale_weight(self, parameter: str, factor: float) -> None:
        with FSDP.summon_full_params(self.module), torch.no_grad():
            self.model.weight(parameter).mul_(factor)

    def parameter_storages(self) -> Iterable[Tensor | None]:
        """Shards, and what is gathered or cast and not freed."""
        yield from super().parameter_storages()
        for flat in self._flat():
            yield getattr(flat, "_local_shard", flat)
            for name in ("_full_param_padded", "_full_prec_full_param_padded", "_mp_shard"):
                yield getattr(flat, name, None)

    def gradient_storages(self) -> Iterable[Tensor | None]:
        yield from super().gradient_storages()
        for flat in self._flat():
            yield flat.grad
            yield getattr(flat, "_saved_grad_shard", None)

    @contextlib.contextmanager
    def _full_state(self) -> Iterator[None]:
        offload = self.case.options.get("offload_to_cpu", False)  # it is there already
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a newer interface
            with FSDP.state_dict_type(
                self.module,
                StateDictType.FULL_STATE_DICT,
                FullStateDictConfig(),
                FullOptimStateDictConfig(offload_to_cpu=offload),
            ):
                yield

    def save(self, folder: Path) -> None:
        with self._full_state():
            model = self.module.state_dict()
            optimizer = FSDP.optim_state_dict(self.module, self.optimizer)
        if self.rank == 0:
            torch.save((model, optimizer, self.counts()), folder / "checkpoint.pt")
        dist.barrier()

    def load(self, folder: Path) -> None:
        model, optimizer, counts = torch.load(folder / "checkpoint.pt")
        with self._full_state():
            self.module.load_state_dict(model)
            self.optimizer.load_state_dict(
                FSDP.optim_state_dict_to_load(self.module, self.optimizer, optimizer)
            )
        self.restore(counts)


TRAINER = Fsdp1
