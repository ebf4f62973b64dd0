"""Bench records as docs/bench.md tells them, read from files that zeroproof has checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, cast

ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8, "int8": 1, "int32": 4, "int64": 8}
LINK_CLASSES = ("intra_node", "inter_node")


@dataclass(frozen=True)
class Timing:
    """Times in seconds, one for each repeat."""

    seconds: tuple[float, ...]
    slowest_rank: tuple[int, ...]
    median: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Prediction:
    seconds: float
    used_for_fit: bool


@dataclass(frozen=True)
class Operation:
    """One operation of one size by one algorithm."""

    op: str
    algorithm: str
    type: str
    ranks: int
    bytes: int
    timing: Timing
    bus_factor: float
    bus_formula: str
    bus_limit: float | None  # bytes a second
    prediction: Prediction | None

    def bus_bandwidth(self, seconds: float) -> float:
        """Bytes a second, for a repeat that took so long."""
        return self.bus_factor * self.bytes / seconds


@dataclass(frozen=True)
class Volume:
    """Elements of one rank in one step."""

    op: str
    traffic: str
    phase: str
    nominal_elements: int
    formula_elements: int
    sent_elements: int
    formula_sent_elements: int


@dataclass(frozen=True)
class Conditions:
    """What steps are compared under."""

    type: str
    ranks: int
    micro_steps: int
    parameters: int
    bucket_elements: int
    compute_seconds: float
    overlap: bool


@dataclass(frozen=True)
class Stage:
    """Whole steps of one stage by one algorithm."""

    stage: int
    algorithm: str
    conditions: Conditions
    timing: Timing
    communication_seconds: float
    computing_seconds: float
    volumes: tuple[Volume, ...]
    nominal_elements: int
    formula: str
    sent_bytes: dict[str, int] | None  # by link class, of all ranks
    prediction: Prediction | None


@dataclass(frozen=True)
class Fit:
    """Latency in seconds and bandwidth in bytes a second, by link class."""

    op: str
    algorithm: str
    latency: dict[str, float | None]
    bandwidth: dict[str, float | None]
    fitted_error: float
    held_out_error: float
    fitted_sizes: int
    held_out_sizes: int


@dataclass(frozen=True)
class Link:
    name: str
    bandwidth_gbit_per_s: float | None
    latency_us: float | None
    sharing: str


@dataclass(frozen=True)
class Record:
    """One run."""

    name: str  # of its file, for readers
    zeroproof_version: str
    command: str
    started: str
    host: str
    processors: int
    backend: str
    backend_detail: str
    topology_name: str
    nodes: int
    ranks_per_node: int
    links: tuple[Link, ...]
    topology_origin: str
    complete: bool
    ended_by: str
    operations: tuple[Operation, ...]
    stages: tuple[Stage, ...]
    fits: tuple[Fit, ...]
    label: str  # tells it from the other records of a report

    @property
    def shape(self) -> str:
        """Nodes and ranks on each, as "2x4"."""
        return f"{self.nodes}x{self.ranks_per_node}"

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def _timing(json_: dict[str, Any]) -> Timing:
    return Timing(
        tuple(json_["seconds"]),
        tuple(json_["slowest_rank"]),
        json_["median_seconds"],
        json_["lowest_seconds"],
        json_["highest_seconds"],
    )


def _prediction(json_: dict[str, Any] | None) -> Prediction | None:
    return None if json_ is None else Prediction(json_["seconds"], json_["used_for_fit"])


def _operation(json_: dict[str, Any]) -> Operation:
    return Operation(
        json_["op"],
        json_["algorithm"],
        json_["type"],
        json_["ranks"],
        json_["bytes"],
        _timing(json_["timing"]),
        json_["bus_factor"],
        json_["bus_formula"],
        json_["bus_limit_bytes_per_s"],
        _prediction(json_["prediction"]),
    )


def _volume(json_: dict[str, Any]) -> Volume:
    return Volume(
        json_["op"],
        json_["traffic"],
        json_["phase"],
        json_["nominal_elements"],
        json_["formula_elements"],
        json_["sent_elements"],
        json_["formula_sent_elements"],
    )


def _stage(json_: dict[str, Any]) -> Stage:
    sent = cast(Optional[dict[str, int]], json_["sent_elements"])
    width = ELEMENT_BYTES[json_["type"]]
    return Stage(
        json_["stage"],
        json_["algorithm"],
        Conditions(
            json_["type"],
            json_["ranks"],
            json_["micro_steps"],
            json_["parameters"],
            json_["bucket_elements"],
            json_["compute_seconds"],
            json_["overlap"],
        ),
        _timing(json_["timing"]),
        json_["communication_seconds"],
        json_["computing_seconds"],
        tuple(_volume(row) for row in json_["volumes"]),
        json_["nominal_elements"],
        json_["formula"],
        None if sent is None else {link: width * elements for link, elements in sent.items()},
        _prediction(json_["prediction"]),
    )


def _fit(json_: dict[str, Any]) -> Fit:
    errors = json_["errors"]
    return Fit(
        json_["op"],
        json_["algorithm"],
        json_["latency_s"],
        json_["bandwidth_bytes_per_s"],
        errors["fitted"],
        errors["held_out"],
        errors["fitted_sizes"],
        errors["held_out_sizes"],
    )


def _link(name: str, json_: dict[str, Any]) -> Link:
    return Link(name, json_["bandwidth_gbit_per_s"], json_["latency_us"], json_["sharing"])


def _record(name: str, json_: dict[str, Any], label: str) -> Record:
    topology = json_["topology"]
    return Record(
        name,
        json_["zeroproof_version"],
        json_["command"],
        json_["started"],
        json_["host"],
        json_["processors"],
        json_["backend"],
        json_["backend_detail"],
        topology["name"],
        topology["nodes"],
        topology["ranks_per_node"],
        tuple(_link(link, topology["links"][link]) for link in LINK_CLASSES),
        json_["topology_origin"],
        json_["complete"],
        json_["ended_by"],
        tuple(_operation(result) for result in json_["operations"]),
        tuple(_stage(result) for result in json_["stages"]),
        tuple(_fit(fit) for fit in json_["fits"]),
        label,
    )


def _labels(documents: list[dict[str, Any]]) -> list[str]:
    """The shape and what else it takes to tell one record from the others."""

    def of(document: dict[str, Any], parts: int) -> str:
        topology = document["topology"]
        shape = f"{topology['nodes']}x{topology['ranks_per_node']}"
        return ", ".join((shape, topology["name"], document["backend"])[:parts])

    for parts in (1, 2, 3):
        labels = [of(document, parts) for document in documents]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{label}, no. {number}" for number, label in enumerate(labels, 1)]


def read_records(files: list[tuple[str, Path]]) -> list[Record]:
    """Of the files, each with the name that readers know it by."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for _, path in files]
    return [
        _record(name, document, label)
        for (name, _), document, label in zip(files, documents, _labels(documents))
    ]
