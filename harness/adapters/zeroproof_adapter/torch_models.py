"""A case's model as a torch.nn.Module, whose gradients are the case's exactly.

The dot model's loss on a rank is the sum of gradient times weight over all uses. The echo model's
is the same, and it records the weights that each pass saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from zeroproof_adapter.cases import Case
from zeroproof_adapter.evidence import Echo, bits_of

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class CaseModel(nn.Module):
    """Parameters with a case's initial weights, in one submodule for each unit.

    `forward(micro_step)` gives the loss of a micro-step on this rank, `forward(None)` that of an
    evaluation. Submodules are registered so that `parameters()` comes in the case's order, unless
    units interleave; a tied parameter is one nn.Parameter of several units. Parameters without a
    unit have a submodule that never runs.
    """

    def __init__(self, case: Case, rank: int, dtype: torch.dtype | None = None) -> None:
        """`dtype` is that of the weights; without it, the case's precision."""
        super().__init__()
        self.case = case
        self.rank = rank
        self.echoes: list[Echo] = []
        self.action = -1  # that echoes belong to; the trainer sets it
        # Called as a unit begins a pass, with whether that is backward and the unit's number.
        self.on_pass: Callable[[bool, int], None] | None = None
        order = {p.name: i for i, p in enumerate(case.parameters)}
        dtype = dtype or DTYPES[case.precision]
        values = {
            # Copied, since an empty array of numpy has strides that no tensor of torch has.
            p.name: nn.Parameter(
                torch.empty(p.shape, dtype=dtype).copy_(torch.tensor(case.initial(p.name))),
                p.trainable,
            )
            for p in case.parameters
        }
        in_units = {name for unit in case.units for name in unit}
        units = [Unit(self, i, unit, values) for i, unit in enumerate(case.units)]
        alone = [Unit(self, -1, (name,), values) for name in order if name not in in_units]
        registered = sorted(
            units + alone, key=lambda unit: min((order[n] for n in unit.names), default=len(order))
        )
        self.all_units = nn.ModuleList(registered)
        self._forward_order = sorted(
            (i for i, unit in enumerate(registered) if unit.index >= 0),
            key=lambda i: registered[i].index,
        )

    def units(self) -> list[Unit]:
        """Submodules in forward order."""
        return [cast(Unit, self.all_units[i]) for i in self._forward_order]

    def weight(self, name: str) -> nn.Parameter:
        """The parameter as it is registered now: wrappers may have replaced it."""
        for unit in self.all_units:
            if name in cast(Unit, unit).names:
                return cast(Unit, unit).weight(name)
        raise KeyError(name)

    def weights(self) -> Iterator[tuple[str, nn.Parameter]]:
        """All parameters with their names, each once, in the case's order."""
        for p in self.case.parameters:
            yield p.name, self.weight(p.name)

    def forward(self, micro_step: int | None) -> Tensor:
        # From unit to unit, as activations go, so that backward passes through all of them in
        # reverse on every rank, and also where a rank uses nothing of a unit.
        loss = torch.zeros((), requires_grad=torch.is_grad_enabled())
        for unit in self.units():
            loss = unit(micro_step, loss)
        return loss


class Unit(nn.Module):
    """What needs its weights at one time."""

    def __init__(
        self, model: CaseModel, index: int, names: tuple[str, ...], values: dict[str, nn.Parameter]
    ) -> None:
        super().__init__()
        self.index = index  # in forward order, -1 for one that never runs
        self.names = names
        self._model = [model]  # in a list, so that it is no submodule
        position = {p.name: i for i, p in enumerate(model.case.parameters)}
        # A name of torch's may hold no dot, one of a case any text.
        self._attributes = {name: f"p{position[name]}" for name in names}
        for name in sorted(names, key=position.__getitem__):
            self.register_parameter(self._attributes[name], values[name])
        earlier = model.case.units[: max(index, 0)]
        self._use = {name: sum(name in unit for unit in earlier) for name in names}

    def weight(self, name: str) -> nn.Parameter:
        return cast(nn.Parameter, getattr(self, self._attributes[name]))

    def forward(self, micro_step: int | None, loss: Tensor) -> Tensor:
        """The loss of the units so far, and with this one."""
        model = self._model[0]
        case, rank = model.case, model.rank
        if model.on_pass is not None:
            model.on_pass(False, self.index)
        terms: list[Tensor] = []
        for name in self.names:
            weight: Tensor = self.weight(name)
            if case.model == "echo":
                weight = _echo(weight, model, self.index, name)
            if micro_step is None:
                terms.append(weight.sum())
            elif case.is_used(micro_step, rank, name) and self._use[name] < case.uses(name):
                gradient = np.array(case.gradient(micro_step, rank, self._use[name], name))
                terms.append((weight * torch.from_numpy(gradient).to(weight)).sum())
        # In fp32, as losses are; the weights' gradients do not depend on its value.
        loss = torch.stack([loss, *(term.float() for term in terms)]).sum()
        return _call_in_backward(loss, model, self.index) if model.on_pass is not None else loss


def _call_in_backward(loss: Tensor, model: CaseModel, unit: int) -> Tensor:
    def call(gradient: Tensor) -> None:
        if model.on_pass is not None:
            model.on_pass(True, unit)

    if loss.requires_grad:
        loss.register_hook(call)  # type: ignore[no-untyped-call]
    return loss


def _echo(weight: Tensor, model: CaseModel, unit: int, name: str) -> Tensor:
    def note(backward: bool, seen: Tensor) -> None:
        model.echoes.append(Echo(model.action, backward, unit, name, bits_of(seen)))

    note(False, weight)
    if not torch.is_grad_enabled():
        return weight
    return cast(Tensor, _Echo.apply(weight, note))  # type: ignore[no-untyped-call]


class _Echo(torch.autograd.Function):
    """The identity, which looks at the weight that was saved for backward when backward comes."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, note: Any) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.note = note
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.note(True, ctx.saved_tensors[0])
        return gradients[0], None
