"""Training records as docs/train.md tells them, read from files that zeroproof has checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "zeroproof training"

# Model states first, so that they lie at the bottom of a stack, below the formula's line.
MODEL_STATES = ("parameter", "gradient", "master", "momentum", "variance")
CATEGORIES = (*MODEL_STATES, "activation", "checkpoint", "buffer")

PHASES_OF_STEP = ("forward", "backward", "reduce", "step")

Bytes = dict[str, int]  # by category, or by phase


@dataclass(frozen=True)
class Step:
    step: int
    loss: float | None  # None where it was not finite
    seconds: float


@dataclass(frozen=True)
class Memory:
    """Of one rank, as measured or as predicted."""

    at_rest: Bytes
    peaks: Bytes  # by phase
    host_peak: int

    @property
    def at_rest_total(self) -> int:
        return sum(self.at_rest.values())

    @property
    def peak(self) -> int:
        return max(self.peaks.values(), default=0)


@dataclass(frozen=True)
class Traffic:
    """Elements of one rank in the last step."""

    traffic: str
    op: str
    phase: str
    operations: int
    nominal_elements: int

    @property
    def is_of_states(self) -> bool:
        """Whether the paper counts it, in multiples of phi."""
        return self.traffic in ("gradient", "parameter")


@dataclass(frozen=True)
class Timeline:
    """What was live from each moment on, in bytes."""

    seconds: tuple[float, ...]
    phases: tuple[str, ...]
    live: dict[str, tuple[int, ...]]  # by category


@dataclass(frozen=True)
class Plan:
    model: str
    stage: int
    ranks: int
    tensor_parallel: int
    precision: str
    steps: int
    samples: int
    micro_steps: int
    seed: int
    blocks_per_checkpoint: int
    partition_checkpoints: bool
    offload_checkpoints: bool
    contiguous_checkpoints: bool
    rest: tuple[Any, ...]  # what else determines the losses

    @property
    def ranks_in_words(self) -> str:
        """ "2x4 ranks" is 2 data-parallel ranks, each cut over 4."""
        if self.tensor_parallel > 1:
            return f"{self.ranks}x{self.tensor_parallel} ranks"
        return f"{self.ranks} rank{'' if self.ranks == 1 else 's'}"

    @property
    def activations_in_words(self) -> str:
        """What becomes of activations; "" if all of them are kept."""
        if self.blocks_per_checkpoint == 0:
            return ""
        words = [f"recompute {self.blocks_per_checkpoint}"]
        if self.partition_checkpoints or self.offload_checkpoints:
            words.append(
                ("Pa+cpu" if self.offload_checkpoints else "Pa")
                if self.partition_checkpoints
                else "offload"
            )
        if self.contiguous_checkpoints:
            words.append("MD")
        return ", ".join(words)

    @property
    def learns_like(self) -> tuple[Any, ...]:
        """Runs that have this in common should have the same losses, but for rounding."""
        return (
            self.model,
            self.precision,
            self.seed,
            self.samples * self.ranks * self.micro_steps,
            self.tensor_parallel,
            self.rest,
        )


@dataclass(frozen=True)
class Run:
    name: str  # of its file, for readers
    label: str  # tells it from the other runs of a report
    zeroproof_version: str
    command: str
    started: str
    data: str
    complete: bool
    ended_by: str
    plan: Plan
    parameters: int  # phi of the whole model
    rank_parameters: int  # phi of one rank, less where tensor parallelism cuts the model
    resumed_at: int
    tokens_per_second: float | None  # None if no step was taken
    formula: tuple[float, ...]  # bytes of model states of a rank, by stage
    predicted: Memory
    by_rank: tuple[Memory, ...]
    traffic: tuple[Traffic, ...]
    steps: tuple[Step, ...]
    timeline: Timeline

    @property
    def has_measured(self) -> bool:
        """A run that ended early, or that had no step to take, has no bytes of one."""
        return bool(self.by_rank)

    @property
    def measured(self) -> Memory:
        """Of the ranks that hold the most."""
        phases = dict.fromkeys(phase for rank in self.by_rank for phase in rank.peaks)
        return Memory(
            max((rank.at_rest for rank in self.by_rank), key=lambda bytes_: sum(bytes_.values())),
            {phase: max(rank.peaks.get(phase, 0) for rank in self.by_rank) for phase in phases},
            max(rank.host_peak for rank in self.by_rank),
        )

    @property
    def peak_error(self) -> float:
        """By which part the peak is above its prediction."""
        return self.measured.peak / self.predicted.peak - 1

    @property
    def state_elements(self) -> int:
        """Of gradients and parameters, which the paper counts as 2 phi or 3 phi."""
        return sum(row.nominal_elements for row in self.traffic if row.is_of_states)

    @property
    def nominal_bytes(self) -> float:
        """What the formula gives for the stage of this run."""
        return self.formula[self.plan.stage]


def _plan(json_: dict[str, Any], data: str) -> Plan:
    return Plan(
        json_["model"]["name"],
        json_["stage"],
        json_["ranks"],
        json_["tensor_parallel"],
        json_["precision"],
        json_["steps"],
        json_["samples"],
        json_["micro_steps"],
        json_["seed"],
        json_["blocks_per_checkpoint"],
        json_["partition_checkpoints"],
        json_["offload_checkpoints"],
        json_["contiguous_checkpoints"],
        (
            data,
            tuple(json_["model"].items()),
            json_["learning_rate"],
            json_["weight_decay"],
            json_["warm_up_steps"],
            json_["clip_norm"],
        ),
    )


def _memory(json_: dict[str, Any]) -> Memory:
    return Memory(json_["at_rest_bytes"], json_["peak_bytes"], json_["host_peak_bytes"])


def _timeline(json_: dict[str, Any]) -> Timeline:
    return Timeline(
        tuple(json_["seconds"]),
        tuple(json_["phase"]),
        {category: tuple(json_[category]) for category in CATEGORIES},
    )


def _run(name: str, json_: dict[str, Any], plan: Plan, label: str) -> Run:
    return Run(
        name,
        label,
        json_["zeroproof_version"],
        json_["command"],
        json_["started"],
        json_["data"],
        json_["complete"],
        json_["ended_by"] or "",
        plan,
        json_["parameters"],
        json_["predicted"]["trainable_elements"],
        json_["resumed_at"],
        json_["tokens_per_second"],
        tuple(json_["formula_bytes"][f"stage_{stage}"] for stage in range(4)),
        _memory(json_["predicted"]),
        tuple(_memory(rank) for rank in json_["by_rank"]),
        tuple(
            Traffic(
                row["traffic"], row["op"], row["phase"], row["operations"], row["nominal_elements"]
            )
            for row in json_["traffic"]
        ),
        tuple(Step(step["step"], step["loss"], step["seconds"]) for step in json_["steps"]),
        _timeline(json_["timeline"]),
    )


def _labels(plans: list[Plan]) -> list[str]:
    """The stage, and what else differs between the runs; numbers if that does not tell."""
    parts: list[list[str]] = [
        [plan.model for plan in plans],
        [plan.ranks_in_words for plan in plans],
        [plan.precision for plan in plans],
        [plan.activations_in_words for plan in plans],
        [f"{plan.samples} x {plan.micro_steps} sequences" for plan in plans],
        [f"seed {plan.seed}" for plan in plans],
    ]
    telling = [words for words in parts if len(set(words)) > 1]
    labels = [
        ", ".join([f"stage {plan.stage}", *filter(None, (words[i] for words in telling))])
        for i, plan in enumerate(plans)
    ]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label}, no. {number}" for number, label in enumerate(labels, 1)]


def read_runs(files: list[tuple[str, Path]]) -> list[Run]:
    """Of the files, each with the name that readers know it by."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for _, path in files]
    plans = [_plan(document["plan"], document["data"]) for document in documents]
    return [
        _run(name, document, plan, label)
        for (name, _), document, plan, label in zip(files, documents, plans, _labels(plans))
    ]
