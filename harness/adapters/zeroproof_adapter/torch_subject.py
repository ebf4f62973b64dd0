"""A base of subjects that train a model with one Adam of torch, in fp32 or beneath mixed precision.

A subclass wraps the model and says what this rank steps, what each parameter's weights are and how
the library clips, saves and loads. Everything is read right after it happened, and nothing of the
library is changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from zeroproof_adapter.cases import Case, Tensors
from zeroproof_adapter.evidence import Slice, State, StepReport
from zeroproof_adapter.torch_models import DTYPES
from zeroproof_adapter.torch_tools import adam_groups, live_bytes
from zeroproof_adapter.torch_trainer import TorchTrainer
from zeroproof_adapter.trainer import Rejected

OBSERVES = frozenset({
    "ownership", "gradient", "momentum", "variance", "master", "weights", "echoes", "norm",
    "clip_coefficient", "skips", "loss_scale", "steps", "live_bytes",
})  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Piece:
    """Elements of a parameter that this rank steps, from `begin` on."""

    name: str
    begin: int
    parameter: nn.Parameter  # as the optimizer has it


def local(tensor: Tensor | None) -> Tensor | None:
    """What this rank holds of a tensor that may be distributed."""
    if tensor is None or not hasattr(tensor, "to_local"):
        return tensor
    return cast(Tensor, tensor.to_local())


class TorchSubject(TorchTrainer):
    """`self.module` is what is called.

    The gradients of a window add up, and are divided by GA once all are there: a division, since
    the inverse of GA may round.
    """

    observes = OBSERVES
    precisions = frozenset({"fp32"})
    module: nn.Module
    optimizer: torch.optim.Optimizer

    def __init__(self, case: Case, rank: int, ranks: int) -> None:
        if not all(np.isfinite(g).all() for g in tensors_of(case).gradient.values()):
            raise Rejected("the steps of torch.optim do not look for gradients that are not finite")
        super().__init__(case, rank, ranks, torch.float32)
        self.ranks = ranks
        self.dtype = DTYPES[case.precision]
        self.taken = 0
        self.stepped = {p.name: 0 for p in case.parameters}  # as they should be
        self.group_at = list(range(len(case.groups)))  # place of a case's group in the optimizer's
        self.gradients: list[Tensor] = []
        self.at_rest = False  # since the last step
        self.wrap()
        # As the optimizer has them; a library may later register others in their place.
        self.parameters = dict(self.model.weights())

    # For subclasses.

    @abstractmethod
    def wrap(self) -> None:
        """Makes `self.module` and `self.optimizer`."""

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """What this rank owns, which may change as groups join."""

    def state_of(self, parameter: nn.Parameter) -> Mapping[str, Any]:
        """The optimizer's state of a parameter that this rank owns."""
        return cast("Mapping[str, Any]", self.optimizer.state.get(parameter, {}))

    def weights(self) -> Mapping[str, Tensor]:
        """All parameters, whole, as this rank would use them."""
        return self.parameters

    @abstractmethod
    def accumulate(self) -> contextlib.AbstractContextManager[Any]:
        """Where passes leave gradients unreduced."""

    def clip_gradients(self, bound: float) -> float:
        """Clips by the library's own means; the norm before."""
        return float(clip_grad_norm_(self.in_optimizer().values(), bound))

    def has_gradient(self, name: str) -> bool:
        """Whether the parameter will be stepped, by whichever rank."""
        return self.parameters[name].grad is not None

    def begin_window(self) -> None:
        """Discards gradients, also of parameters that are in no optimizer group yet."""
        self.optimizer.zero_grad()
        for weight in self.parameters.values():
            weight.grad = None

    def buffers(self) -> Iterable[Tensor | None]:
        """What the library holds beside model states, as far as it can be seen."""
        return ()

    def parameter_storages(self) -> Iterable[Tensor | None]:
        return (local(w) for w in self.parameters.values())

    def gradient_storages(self) -> Iterable[Tensor | None]:
        return (local(w.grad) for w in self.parameters.values())

    # Actions.

    def save(self, folder: Path) -> None:
        """For libraries whose states are whole on rank 0, or were brought there before."""
        if self.rank == 0:
            parts = (self.model.state_dict(), self.optimizer.state_dict(), self.counts())
            torch.save(parts, folder / "checkpoint.pt")
        dist.barrier()

    def load(self, folder: Path) -> None:
        model, optimizer, counts = torch.load(folder / "checkpoint.pt")
        self.model.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)
        self.restore(counts)

    def in_optimizer(self) -> dict[str, nn.Parameter]:
        """Trained parameters by name; those of groups that join later are not among them yet."""
        waiting = {g for g in self.case.late_groups if self.group_at[g] == g}
        return {
            p.name: self.parameters[p.name]
            for p in self.case.parameters
            if p.trainable and p.group not in waiting
        }

    def _leave_rest(self) -> None:
        """Before whatever touches gradients. They stay until then, since they count as a part of
        what a rank keeps at rest."""
        if self.at_rest:
            self.begin_window()
        self.at_rest = False

    def micro_step(self, micro_step: int, synchronise: bool) -> None:
        self._leave_rest()
        with contextlib.nullcontext() if synchronise else self.accumulate():
            loss = self.module(micro_step)
            self.enter("backward")
            loss.backward()
        if synchronise and self.case.micro_steps > 1:
            for weight in self.parameters.values():
                if (gradient := local(weight.grad)) is not None:
                    gradient.div_(self.case.micro_steps)

    def step(self) -> StepReport:
        self._leave_rest()
        pieces = self.pieces()
        self.gradients = [self._gradient(piece).clone() for piece in pieces]
        bound = self.case.clip_norm or float("inf")
        norm = self.clip_gradients(bound)
        report = StepReport(False, norm, self._coefficient(pieces, bound, norm))
        stepped = {name for name in self.in_optimizer() if self.has_gradient(name)}
        self.optimizer.step()
        for name in stepped:
            self.stepped[name] += 1
        self.taken += bool(stepped)
        self.at_rest = True
        return report

    def _gradient(self, piece: Piece) -> Tensor:
        gradient = local(piece.parameter.grad)
        if gradient is None:
            gradient = torch.zeros_like(cast(Tensor, local(piece.parameter)))
        return gradient.detach().flatten()

    def _coefficient(self, pieces: Sequence[Piece], bound: float, norm: float) -> float:
        """The documented coefficient if gradients were multiplied by it, else what they were."""
        documented = (torch.tensor(bound) / (torch.tensor(norm) + 1e-6)).clamp(max=1.0)
        for piece, before in zip(pieces, self.gradients):
            after = self._gradient(piece)
            if not torch.equal(before * documented, after):
                largest = int(before.abs().argmax())
                return float(after[largest].double() / before[largest].double())
        return float(documented)

    def zero_grad(self, by: str) -> None:
        (self.optimizer if by == "optimizer" else self.module).zero_grad()

    def evaluate(self) -> None:
        self.module.eval()
        with torch.no_grad():
            self.module(None)
        self.module.train()

    def set_learning_rate(self, group: int, value: float) -> None:
        self.optimizer.param_groups[self.group_at[group]]["lr"] = value

    def clip(self, norm: float) -> None:
        self._leave_rest()
        self.clip_gradients(norm)

    def scale_gradient(self, parameter: str, factor: float) -> None:
        self._leave_rest()
        if (gradient := self.parameters[parameter].grad) is not None:
            gradient.mul_(factor)

    def scale_weight(self, parameter: str, factor: float) -> None:
        with torch.no_grad():
            self.parameters[parameter].mul_(factor)

    def add_group(self, group: int) -> None:
        # The group is in the optimizer already, without parameters, so that numbers agree.
        self.group_at[group] = len(self.optimizer.param_groups)
        late = adam_groups(self.case, self.parameters.items(), late=True)[group]
        self.optimizer.add_param_group(late)

    def counts(self) -> dict[str, Any]:
        """What a trainer keeps in a checkpoint beside the library's part."""
        return {"taken": self.taken, "stepped": self.stepped, "group_at": self.group_at}

    def restore(self, counts: Mapping[str, Any]) -> None:
        self.taken, self.stepped = counts["taken"], dict(counts["stepped"])
        self.group_at = list(counts["group_at"])

    # Reading.

    def read(self, after_step: bool) -> State:
        pieces, slices = self.pieces(), []
        for i, piece in enumerate(pieces):
            state, master = self.state_of(piece.parameter), cast(Tensor, local(piece.parameter))
            momentum, variance = (
                torch.zeros_like(master) if key not in state else local(state[key])
                for key in ("exp_avg", "exp_avg_sq")
            )
            gradient = self.gradients[i] if after_step else None
            slices.append(Slice(piece.name, piece.begin, master, momentum, variance, gradient))
        return State(slices, self.weights(), self._steps_taken(pieces), 0, 1.0, self.live())

    def _steps_taken(self, pieces: Sequence[Piece]) -> int:
        """The optimizer counts for each parameter, and a parameter without a gradient is not
        stepped: the steps so far, and by how many a count is off."""
        wrong = [0]
        for piece in pieces:
            state = self.state_of(piece.parameter)
            wrong.append(int(state.get("step", 0)) - self.stepped[piece.name])
        return self.taken + max(wrong, key=abs)

    def states(self) -> Iterable[Mapping[str, Any]]:
        """All states that are there, whether they are of use or not."""
        return (self.state_of(piece.parameter) for piece in self.pieces())

    def live(self) -> dict[str, int]:
        states = list(self.states())
        sizes = live_bytes(
            {
                "parameter": self.parameter_storages(),
                "gradient": self.gradient_storages(),
                "momentum": (local(s.get("exp_avg")) for s in states),
                "variance": (local(s.get("exp_avg_sq")) for s in states),
                "buffer": self.buffers(),
            }
        )
        return {category: size for category, size in sizes.items() if size or category != "buffer"}


def tensors_of(case: Case) -> Tensors:
    assert case.tensors is not None, "a trainer gets its case with tensors"
    return case.tensors


def gathered(case: Case, pieces: Iterable[tuple[str, int, Tensor]]) -> dict[str, Tensor]:
    """Whole parameters from the pieces of all ranks, bit by bit and in one operation: the sum of
    each element's bits, which but one rank has and the others hold as zero."""
    sizes = [p.elements for p in case.parameters]
    begins = dict(zip((p.name for p in case.parameters), np.cumsum([0, *sizes]).tolist()))
    bits = torch.zeros(sum(sizes), dtype=torch.int32)
    dtype = torch.float32
    for name, begin, piece in pieces:
        dtype = piece.dtype
        at = begins[name] + begin
        bits[at : at + piece.numel()] += piece.detach().flatten().float().view(torch.int32)
    dist.all_reduce(bits)
    whole = torch.split(bits.view(torch.float32).to(dtype), sizes)
    return {p.name: values for p, values in zip(case.parameters, whole)}
