"""What a rank of DeepSpeed holds: its part of each parameter's states, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

import torch
from deepspeed.utils import (
    safe_get_local_fp32_param,
    safe_get_local_grad,
    safe_get_local_optimizer_state,
    safe_set_full_fp32_param,
    safe_set_local_fp32_param,
)
from torch import Tensor

from zeroproof_adapter.evidence import Slice
from zeroproof_adapter.torch_tools import live_bytes

Weights = Mapping[str, Any]  # nn.Parameters with attributes of DeepSpeed


@dataclass
class Piece:
    """The elements of a parameter that a rank owns, and where DeepSpeed keeps their states."""

    name: str
    weight: Any
    begin: int
    elements: int

    def master(self) -> Tensor:
        if hasattr(self.weight, "ds_id"):
            return self._lean(safe_get_local_fp32_param(self.weight))
        mapping = self.weight._hp_mapping
        return self._lean(mapping.get_hp_fragment())

    def set_master(self, whole: Tensor) -> None:
        """`whole` is that of the parameter, of which this rank's elements are taken."""
        if hasattr(self.weight, "ds_id"):
            part = torch.zeros_like(safe_get_local_fp32_param(self.weight))
            part[: self.elements] = whole.flatten()[self.begin : self.begin + self.elements]
            safe_set_local_fp32_param(self.weight, part)
        else:
            safe_set_full_fp32_param(self.weight, whole)

    def scale_master(self, factor: float) -> None:
        if hasattr(self.weight, "ds_id"):
            scaled = safe_get_local_fp32_param(self.weight) * factor
            safe_set_local_fp32_param(self.weight, scaled)
        else:
            mapping = self.weight._hp_mapping
            mapping.get_hp_fragment().data.mul_(factor)

    def moment(self, key: str, optimizer: Any) -> Tensor:
        """A state of torch's Adam by its name, zero before the first step has made it."""
        if hasattr(self.weight, "ds_id"):
            try:
                return self._lean(safe_get_local_optimizer_state(self.weight, key))
            except KeyError:
                return torch.zeros(self.elements)
        # As safe_get_full_optimizer_state() does, which fails between a load and the next step.
        mapping = self.weight._hp_mapping
        flat = flat_masters(optimizer)[mapping.param_group_index]
        if key not in optimizer.state.get(flat, {}):
            return torch.zeros(self.elements)
        begin = mapping.hp_fragment_address.start
        return self._lean(optimizer.state[flat][key][begin:])

    def gradient(self) -> Tensor:
        """What the optimizer is about to see, still with the loss scale, before clipping."""
        if hasattr(self.weight, "ds_id"):
            return self._lean(safe_get_local_grad(self.weight))
        # As safe_get_full_grad() does, without its all-reduce.
        mapping = self.weight._hp_mapping
        gradient = mapping.get_lp_grad_fragment(self.weight._index_in_param_group).flatten()
        if gradient.numel() != self.elements:
            gradient = gradient.narrow(0, self.begin, self.elements)
        return self._lean(gradient)

    def _lean(self, padded: Tensor) -> Tensor:
        return padded.detach().flatten()[: self.elements].float().clone()


def owned_pieces(weights: Weights, rank: int) -> list[Piece]:
    """This rank's elements of each trained parameter, as the engine has partitioned them."""
    pieces = []
    for name, weight in weights.items():
        if hasattr(weight, "ds_id"):
            if not weight.requires_grad:
                continue
            part = int(weight.partition_numel())
            begin = rank * part
            elements = max(0, min(part, int(weight.ds_numel) - begin))
        else:
            mapping = getattr(weight, "_hp_mapping", None)
            if mapping is None:
                continue
            begin = int(mapping.lp_fragment_address.start)
            elements = int(mapping.lp_fragment_address.numel)
        if elements > 0:
            pieces.append(Piece(name, weight, begin, elements))
    return pieces


def slices(
    pieces: Iterable[Piece], optimizer: Any, gradients: Mapping[str, Tensor] | None
) -> list[Slice]:
    return [
        Slice(
            piece.name,
            piece.begin,
            piece.master(),
            piece.moment("exp_avg", optimizer),
            piece.moment("exp_avg_sq", optimizer),
            None if gradients is None else gradients[piece.name],
        )
        for piece in pieces
    ]


def steps_taken(engine: Any) -> int:
    """The t of the optimizer's bias correction; of several, one that is not as it should be."""
    expected = int(engine.global_steps - engine.skipped_steps)
    counters = {int(s["step"]) for s in engine.optimizer.state.values() if "step" in s}
    return next((t for t in counters if t != expected), expected if counters else 0)


def loss_scale(engine: Any) -> float:
    """1 where the optimizer of the engine has none, as that of bf16 accumulated in fp32."""
    return float(getattr(engine.optimizer, "loss_scale", 1.0))


def flat_masters(optimizer: Any) -> list[Tensor]:
    """Of stages 1 and 2, this rank's part of each optimizer group."""
    if hasattr(optimizer, "single_partition_of_fp32_groups"):
        return list(optimizer.single_partition_of_fp32_groups)
    return list(optimizer.fp32_groups_flat_partition)  # stage 1, bf16 accumulated in fp32


def bytes_at_rest(engine: Any, weights: Weights) -> dict[str, int]:
    """Bytes of storages that the engine's optimizer or the model refer to, by category.

    What is no model state is a buffer, be it one of communication or forgotten.
    """
    optimizer = engine.optimizer
    states = [s for s in optimizer.state.values() if isinstance(s, dict)]
    if hasattr(optimizer, "single_partition_of_fp32_groups"):
        masters = optimizer.single_partition_of_fp32_groups
        parameters = optimizer.bit16_groups_flat
        gradients = [optimizer.averaged_gradients, optimizer.all_grad_tensors]
    elif hasattr(optimizer, "fp32_partitioned_groups_flat"):
        masters = optimizer.fp32_partitioned_groups_flat
        parameters = optimizer.fp16_partitioned_groups_flat
        gradients = [optimizer.averaged_gradients, optimizer.grad_partitions_flat_buffer]
    else:
        masters = flat_masters(optimizer)
        parameters = optimizer.bf16_groups_flat
        gradients = [optimizer.fp32_groups_gradients_flat]
    of_weights = [[w.data, getattr(w, "ds_tensor", None)] for w in weights.values()]
    of_gradients = [[w.grad, getattr(w, "grad_accum", None)] for w in weights.values()]
    return live_bytes(
        {
            "parameter": tensors_in([of_weights, parameters]),
            "gradient": tensors_in([of_gradients, gradients, [m.grad for m in masters]]),
            "master": tensors_in(masters),
            "momentum": tensors_in([s.get("exp_avg") for s in states]),
            "variance": tensors_in([s.get("exp_avg_sq") for s in states]),
            # Counters and flags are single elements, and no part of any formula.
            "buffer": (t for t in tensors_in(vars(optimizer)) if t.dim() > 0 and t.numel() > 1),
        }
    )


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Tensors with memory in nested containers and data classes."""
    if isinstance(value, Tensor):
        if not value.is_meta:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        for each in value:
            yield from tensors_in(each)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(vars(value))
