"""A base of adapters for trainers of torch: the case's model, its phases and its records."""

from __future__ import annotations

import torch

from zeroproof_adapter.cases import Case
from zeroproof_adapter.evidence import Records
from zeroproof_adapter.torch_models import CaseModel
from zeroproof_adapter.torch_tools import Observing
from zeroproof_adapter.traffic import Record, default_traffic
from zeroproof_adapter.trainer import Trainer


class TorchTrainer(Trainer):
    """Call `super().__init__` first; it makes the process group and `self.model`."""

    @classmethod
    def prepare(cls) -> None:
        Observing.prepare()

    def __init__(self, case: Case, rank: int, ranks: int, dtype: torch.dtype | None = None) -> None:
        """`dtype` is that of the model's weights; without it, the case's precision."""
        self.case = case
        self.rank = rank
        self.observing = Observing(case, self.classify)
        self.observes = frozenset(type(self).observes) | self.observing.observes
        self.model = CaseModel(case, rank, dtype)
        self.model.on_pass = self._note_in_flight

    def classify(self, record: Record) -> str:
        """The traffic that a recorded operation belongs to; override what does not hold."""
        return default_traffic(record)

    def enter(self, phase: str) -> None:
        self.model.action = self.action
        self.observing.enter(self.action, phase)

    def _note_in_flight(self, backward: bool, unit: int) -> None:
        self.observing.note_in_flight(self.action, backward, unit)

    def records(self) -> Records:
        return self.observing.records(self.model.echoes)
