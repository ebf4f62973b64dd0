"""What an adapter implements: one class between a case and a trainer.

`Trainer` is one rank of a distributed trainer, `World` a trainer that simulates all ranks in one
process. Both have the same actions. An optional action that a class does not override is refused
before any work, so an adapter implements what its trainer can do and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from pathlib import Path
from typing import ClassVar

from zeroproof_adapter.cases import Case
from zeroproof_adapter.evidence import OBSERVABLE, Records, State, StepReport


class Rejected(Exception):
    """The trainer does not support the case. Raised before any work, on all ranks alike."""


class Unavailable(Exception):
    """The trainer cannot run on this machine: a device or a library is missing."""


class Actions(ABC):
    """What a program does. `parameter` is a name, `group` a number of Case.groups."""

    name: ClassVar[str]
    stages: ClassVar[Set[int]]
    precisions: ClassVar[Set[str]]
    features: ClassVar[Set[str]] = frozenset()  # of Case.features
    options: ClassVar[Set[str]] = frozenset()  # names that Case.options may have
    # What read(), step() and records() show, of evidence.OBSERVABLE. An instance may have its own.
    observes: Set[str]

    # The action being performed, or -1 before the first; the runner sets it.
    action: int = -1

    @classmethod  # noqa: B027
    def prepare(cls) -> None:
        """Once in a process, before any rank begins: compile or import what takes long."""

    def enter(self, phase: str) -> None:  # noqa: B027
        """Called before what belongs to `phase`. micro_step() begins in `forward` and itself calls
        `self.enter("backward")` between its passes. Override it to label what you record."""

    @abstractmethod
    def micro_step(self, micro_step: int, synchronise: bool) -> None:
        """Forward and backward with the gradients of that number. `synchronise` is false if more
        micro-steps of the window follow: gradients need not be reduced yet."""

    @abstractmethod
    def step(self) -> StepReport | Sequence[StepReport]:
        """Step of the optimizer, clipped to case.clip_norm, skipped if a gradient is not finite.
        The window ends here: the next micro-step starts from gradients of zero."""

    def zero_grad(self, by: str) -> None:
        """Discard the window's gradients, by `optimizer` or by `model`."""
        raise self._unsupported("zero_grad")

    def evaluate(self) -> None:
        """A forward pass without gradients."""
        raise self._unsupported("evaluate")

    def save(self, folder: Path) -> None:
        """A checkpoint into an existing folder that all ranks share."""
        raise self._unsupported("save")

    def load(self, folder: Path) -> None:
        """Back to what save() has left in `folder`, maybe with another world size."""
        raise self._unsupported("load")

    def set_learning_rate(self, group: int, value: float) -> None:
        raise self._unsupported("rate")

    def clip(self, norm: float) -> None:
        """Clip the accumulated gradients now, to that global norm."""
        raise self._unsupported("clip")

    def scale_gradient(self, parameter: str, factor: float) -> None:
        """Multiply the accumulated gradient of a parameter."""
        raise self._unsupported("scale_gradient")

    def scale_weight(self, parameter: str, factor: float) -> None:
        """Multiply a parameter in place, its master included."""
        raise self._unsupported("scale_weight")

    def freeze(self, parameter: str) -> None:
        raise self._unsupported("freeze")

    def unfreeze(self, parameter: str) -> None:
        raise self._unsupported("unfreeze")

    def add_group(self, group: int) -> None:
        """Parameters of the group join the optimizer. Until now they were in case.late_groups."""
        raise self._unsupported("add_group")

    def close(self) -> None:  # noqa: B027
        """After the last action; also after a failure."""

    def _unsupported(self, action: str) -> Rejected:
        return Rejected(f"{self.name} does not support the action {action}")


class Trainer(Actions):
    """One rank of a distributed trainer. Each rank is a process of its own."""

    @abstractmethod
    def __init__(self, case: Case, rank: int, ranks: int) -> None:
        """Builds the case's model and optimizer. Raises Rejected for what it does not support."""

    @abstractmethod
    def step(self) -> StepReport: ...

    @abstractmethod
    def read(self, after_step: bool) -> State:
        """What this rank holds now; all ranks call it together. `after_step` is true right after a
        step that was not skipped: slices then carry the gradient, which step() may have to keep."""

    def records(self) -> Records:
        """What was recorded since the beginning; called once, after the last action."""
        return Records()


class World(Actions):
    """A trainer that simulates all ranks in one process."""

    @abstractmethod
    def __init__(self, case: Case, ranks: int) -> None:
        """Builds all ranks. Raises Rejected for what it does not support."""

    @abstractmethod
    def step(self) -> StepReport | Sequence[StepReport]:
        """As above; one report for all ranks, or one each."""

    @abstractmethod
    def read(self, rank: int, after_step: bool) -> State:
        """What a rank holds now; see Trainer.read()."""

    def records(self, rank: int) -> Records:
        """What was recorded of a rank since the beginning."""
        return Records()


# By kind of action, the methods that it needs. The rest is abstract, or done by the runner.
_METHODS = {
    "zero_grad": "zero_grad",
    "evaluate": "evaluate",
    "rate": "set_learning_rate",
    "clip": "clip",
    "scale_gradient": "scale_gradient",
    "scale_weight": "scale_weight",
    "freeze": "freeze",
    "unfreeze": "unfreeze",
    "add_group": "add_group",
    "save": "save",
    "load": "load",
    "reload": "load",
}


def check_declaration(trainer: type[Actions]) -> None:
    """That the class says what it has to. Raises TypeError."""
    for attribute in ("name", "stages", "precisions", "observes"):
        if not hasattr(trainer, attribute):
            raise TypeError(f"{trainer.__name__} does not say its {attribute}")
    if unknown := set(trainer.observes) - OBSERVABLE:
        raise TypeError(f"{trainer.__name__} observes {sorted(unknown)[0]!r}, which is not known")


def why_rejected(trainer: type[Actions], case: Case) -> str | None:
    """What in a case is outside of the class's declaration, or None."""
    name = trainer.name
    for feature in case.features:
        if feature not in trainer.features:
            return f"{name} has no {feature}"
    for option in case.options:
        if option not in trainer.options:
            return f"{name} has no option {option}"
    if case.stage not in trainer.stages:
        return f"{name} has no stage {case.stage}"
    if case.precision not in trainer.precisions:
        return f"{name} does not train in {case.precision}"
    kinds = [a.kind for a in case.actions] + (["save"] if case.save_to else [])
    for kind in kinds:
        method = _METHODS.get(kind)
        if method and getattr(trainer, method) is getattr(Actions, method):
            return f"{name} does not support the action {kind}"
    return None
