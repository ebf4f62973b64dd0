"""What adapters of torch trainers share: a case's Adam, live bytes, and observed collectives."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from zeroproof_adapter.cases import Case
from zeroproof_adapter.evidence import Echo, InFlight, Race, Records
from zeroproof_adapter.traffic import REDUCING, Classifier, canonical, default_traffic


def adam_groups(
    case: Case, weights: Iterable[tuple[str, nn.Parameter]], late: bool = False
) -> list[dict[str, Any]]:
    """A case's groups for torch.optim.Adam, in the case's order, with the trainable parameters.

    A group without parameters stays, so that numbers agree. Those that `add_group` brings in come
    empty; `late` gives their parameters alone.
    """
    members: list[list[nn.Parameter]] = [[] for _ in case.groups]
    for name, weight in weights:
        p = case.parameter(name)
        if p.trainable and (p.group in case.late_groups) == late:
            members[p.group].append(weight)
    return [
        {
            "params": params,
            "lr": g.learning_rate,
            "betas": g.betas,
            "eps": g.epsilon,
            "weight_decay": g.weight_decay,
            "decoupled_weight_decay": g.decoupled,
        }
        for params, g in zip(members, case.groups)
    ]


def adam_class(case: Case) -> type[torch.optim.Adam]:
    """AdamW if every group decays decoupled, else Adam, in which each group says its own form."""
    return torch.optim.AdamW if all(g.decoupled for g in case.groups) else torch.optim.Adam


def adam(case: Case, weights: Iterable[tuple[str, nn.Parameter]]) -> torch.optim.Adam:
    return adam_class(case)(adam_groups(case, weights))


def moments(optimizer: torch.optim.Optimizer, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Momentum and variance of a parameter as flat tensors, zero before its first step."""
    state = optimizer.state.get(weight, {})
    zero = torch.zeros_like(weight, dtype=torch.float32)
    return (state.get("exp_avg", zero).flatten(), state.get("exp_avg_sq", zero).flatten())


def all_finite(gradients: Iterable[Tensor]) -> bool:
    return all(bool(torch.isfinite(g).all()) for g in gradients)


def live_bytes(categories: Mapping[str, Iterable[Tensor | None]]) -> dict[str, int]:
    """Bytes of the distinct storages behind the tensors of each category.

    A storage counts once, in the first category that has it: a whole bucket for a view into it.
    """
    seen: set[int] = set()
    total = dict.fromkeys(categories, 0)
    for category, tensors in categories.items():
        for tensor in tensors:
            if tensor is None:
                continue
            storage = tensor.untyped_storage()
            if storage.nbytes() and storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                total[category] += storage.nbytes()
    return total


@functools.cache
def _observer() -> ModuleType | None:
    """The module that records collectives, installed; None, and a message, where it cannot be."""
    observer = importlib.import_module("zeroproof_adapter.observer")
    try:
        observer.install()
    except observer.ObserverUnavailable as error:
        print(f"collectives are not observed: {error}", file=sys.stderr)
        return None
    return observer


class Observing:
    """The default process group of this process, through which collectives are recorded.

    One a case; the group itself is made once. `observes` is what it adds to a trainer's own.
    """

    observes: frozenset[str] = frozenset()

    @staticmethod
    def prepare() -> None:
        """Builds and loads the observer, before ranks are forked."""
        importlib.import_module("torch._dynamo")  # the first optimizer would, in each rank
        _observer()

    def __init__(self, case: Case, classify: Classifier = default_traffic) -> None:
        """Rank and world size are those of the environment. See traffic.py on `classify`."""
        self._observer = _observer()
        self._classify = classify
        self._in_flight: list[InFlight] = []
        self._hostile = case.hostile and self._observer is not None
        if self._observer is not None:
            self.observes = frozenset({"collectives", "in_flight", "races"})
        if not dist.is_initialized():
            dist.init_process_group("gloo" if self._observer is None else "zeroproof")
        if self._observer is not None:
            self._observer.take_records()
            self._observer.set_hostile(case.index if self._hostile else None)
        self.enter(-1, "initialise")

    def enter(self, action: int, phase: str) -> None:
        """What starts from now on belongs to that action and phase."""
        if self._observer is not None:
            self._observer.enter(action, phase)

    def note_in_flight(self, action: int, backward: bool, unit: int) -> None:
        """Counts what is in flight as a unit begins a pass."""
        if self._observer is None:
            return
        count: dict[str, int] = self._observer.in_flight()
        reductions = sum(n for op, n in count.items() if op in REDUCING)
        others = sum(count.values()) - reductions
        self._in_flight.append(InFlight(action, backward, unit, reductions, others))

    def records(self, echoes: Iterable[Echo] = ()) -> Records:
        """What was recorded since the beginning of the case."""
        if self._observer is None:
            return Records(echoes=list(echoes))
        return Records(
            echoes=list(echoes),
            collectives=canonical(self._observer.take_records(), self._classify),
            in_flight=self._in_flight,
            races=[
                Race(r["kind"], r["operation"], r["number"], r["element"])
                for r in (self._observer.take_races() if self._hostile else ())
            ],
            races_watched=self._hostile,
        )
