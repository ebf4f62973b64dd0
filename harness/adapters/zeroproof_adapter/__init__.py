"""Adapters between trainers and zeroproof, a conformance suite for implementations of ZeRO."""

from zeroproof_adapter.cases import (
    Action,
    Case,
    CasesError,
    FloatArray,
    Group,
    LossScale,
    Parameter,
    read_plan,
)
from zeroproof_adapter.evidence import (
    Collective,
    Echo,
    InFlight,
    Race,
    Records,
    Slice,
    State,
    StepReport,
)
from zeroproof_adapter.runner import main
from zeroproof_adapter.simulated import main_simulated
from zeroproof_adapter.trainer import Rejected, Trainer, Unavailable, World

__all__ = [
    "Action",
    "Case",
    "CasesError",
    "Collective",
    "Echo",
    "FloatArray",
    "Group",
    "InFlight",
    "LossScale",
    "Parameter",
    "Race",
    "Records",
    "Rejected",
    "Slice",
    "State",
    "StepReport",
    "Trainer",
    "Unavailable",
    "World",
    "main",
    "main_simulated",
    "read_plan",
]
