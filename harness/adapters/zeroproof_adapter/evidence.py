"""What a rank shows of a case, and the files that carry it. The format is docs/protocol.md."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zeroproof_adapter.cases import Case

SCHEMA = "zeroproof.evidence/1"

# What may stand in `observed`.
OBSERVABLE = frozenset({
    "ownership", "gradient", "momentum", "variance", "master", "weights", "echoes", "norm",
    "clip_coefficient", "skips", "loss_scale", "steps", "live_bytes", "peak_bytes", "collectives",
    "in_flight", "races",
})  # fmt: skip

# A numpy array or a torch tensor of fp32, fp16, fp64 or, of torch, bf16.
Array = Any


class EvidenceError(Exception):
    """An adapter has handed over something that the protocol has no place for."""


class Bits(NamedTuple):
    """A tensor of any of the protocol's types, bit by bit."""

    type: str  # F32, F16, BF16 or F64
    shape: tuple[int, ...]
    data: bytes  # little-endian, row by row

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


_TYPES = {"float32": "F32", "float16": "F16", "float64": "F64"}


def bits_of(array: Array) -> Bits:
    """A copy of a numpy array or torch tensor, on whatever device. Raises EvidenceError."""
    if isinstance(array, Bits):
        return array
    shape = tuple(int(n) for n in array.shape)
    if type(array).__module__.split(".")[0] == "torch":
        # A clone, since torch can no longer free a storage that numpy has seen.
        tensor = array.detach().clone().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            import torch  # numpy has no bf16: its bits travel as integers

            return Bits("BF16", shape, tensor.view(torch.int16).numpy().tobytes())
        array = tensor.numpy()
    values = np.ascontiguousarray(array)
    if values.dtype.name not in _TYPES:
        raise EvidenceError(f"a tensor of type {values.dtype.name} has no place in evidence")
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return Bits(_TYPES[values.dtype.name], shape, little.tobytes())


@dataclasses.dataclass
class Slice:
    """The state of elements [begin, begin + elements) of a parameter, flat, that this rank keeps.

    `gradient` is the one that the optimizer saw in this step: averaged over ranks and micro-steps,
    unscaled, before clipping. It is needed after a step that was not skipped. What the trainer does
    not observe may be None.
    """

    parameter: str
    begin: int
    master: Array
    momentum: Array | None = None
    variance: Array | None = None
    gradient: Array | None = None


@dataclasses.dataclass
class State:
    """What a rank holds between two actions."""

    slices: Sequence[Slice]
    weights: Mapping[str, Array]  # by parameter, whole, as this rank would use it now
    steps_taken: int = 0
    steps_skipped: int = 0
    loss_scale: float = 1.0
    live_bytes: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by category


@dataclasses.dataclass
class StepReport:
    """What a step says of itself."""

    skipped: bool = False
    norm: float | None = None  # global norm before clipping, unscaled
    clip_coefficient: float | None = None  # what gradients were multiplied by


@dataclasses.dataclass
class Echo:
    """The weights of a parameter that a unit used in a pass."""

    action: int
    backward: bool
    unit: int  # of Case.units
    parameter: str
    weights: Array


@dataclasses.dataclass(frozen=True)
class Collective:
    """One operation of this rank, as the protocol's canonical record."""

    action: int
    phase: str
    traffic: str
    op: str
    reduction: str
    type: str
    in_elements: int
    out_elements: int
    peer: int
    group: tuple[int, ...]
    sequence: int
    awaited: bool


@dataclasses.dataclass(frozen=True)
class InFlight:
    """Operations that were started and not waited for when a unit began a pass."""

    action: int
    backward: bool
    unit: int
    gradients: int  # reductions
    parameters: int  # gathers


@dataclasses.dataclass(frozen=True)
class Race:
    kind: str  # input touched in flight, output touched in flight or never waited for
    operation: str
    number: int
    element: int


@dataclasses.dataclass
class Records:
    """What was recorded during a whole case."""

    echoes: Sequence[Echo] = ()
    collectives: Sequence[Collective] = ()
    in_flight: Sequence[InFlight] = ()
    races: Sequence[Race] = ()
    races_watched: bool = False
    peak_bytes: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by phase


class Evidence:
    """Collects what one rank shows of one case and writes it."""

    def __init__(self, case: Case, rank: int, folder: Path) -> None:
        """`folder` is that of the case, `{results}/INDEX`."""
        self.observed: frozenset[str] = frozenset()
        self.records = Records()
        self._case = case
        self._rank = rank
        self._folder = folder
        self._snapshots: list[dict[str, Any]] = []
        self._tensors: dict[str, Bits] = {}

    def add_snapshot(self, action: int, state: State, report: StepReport | None = None) -> None:
        """Copies what a rank holds after an action; `report` is that of a step. -1: at first."""
        number = len(self._snapshots)
        snapshot: dict[str, Any] = {
            "action": action,
            "owned": [],
            "steps_taken": int(state.steps_taken),
            "steps_skipped": int(state.steps_skipped),
            "loss_scale": _scalar(state.loss_scale),
            "live_bytes": {category: int(n) for category, n in state.live_bytes.items()},
        }
        if report is not None:
            snapshot["skipped"] = bool(report.skipped)
            snapshot["norm"] = None if report.norm is None else _scalar(report.norm)
            snapshot["clip_coefficient"] = (
                None if report.clip_coefficient is None else _scalar(report.clip_coefficient)
            )
            for key in ("norm", "clip_coefficient"):
                if snapshot[key] is None:
                    if key in self.observed:
                        raise EvidenceError(f"the step of action {action} does not report {key}")
                    del snapshot[key]
        with_gradient = report is not None and not report.skipped
        for i, piece in enumerate(state.slices):
            elements = self._add_slice(f"{number}/owned/{i}", piece, with_gradient)
            snapshot["owned"].append(
                {"parameter": piece.parameter, "begin": int(piece.begin), "elements": elements}
            )
        self._add_weights(number, state.weights)
        self._snapshots.append(snapshot)

    def _add_slice(self, place: str, piece: Slice, with_gradient: bool) -> int:
        if piece.parameter not in (p.name for p in self._case.parameters):
            raise EvidenceError(f"a slice is of {piece.parameter!r}, which is no parameter")
        elements = -1
        for key in ("master", "momentum", "variance", "gradient"):
            values = getattr(piece, key)
            if values is None or (key == "gradient" and not with_gradient):
                if key in self.observed and (key != "gradient" or with_gradient):
                    raise EvidenceError(f"a slice of {piece.parameter} is without its {key}")
                continue
            bits = bits_of(values)
            if elements not in (-1, bits.elements):
                raise EvidenceError(
                    f"the {key} of {piece.parameter} at {piece.begin} has {bits.elements} elements,"
                    f" others have {elements}"
                )
            elements = bits.elements
            self._tensors[f"{place}/{key}"] = bits._replace(shape=(elements,))
        if elements < 0:
            raise EvidenceError(f"a slice of {piece.parameter} carries nothing")
        return elements

    def _add_weights(self, number: int, weights: Mapping[str, Array]) -> None:
        for p in self._case.parameters:
            if p.name not in weights:
                if "weights" in self.observed:
                    raise EvidenceError(f"the weights of {p.name} are missing")
                continue
            bits = bits_of(weights[p.name])
            if bits.elements != p.elements:
                raise EvidenceError(
                    f"the weights of {p.name} have {bits.elements} elements, not {p.elements}"
                )
            self._tensors[f"{number}/weights/{p.name}"] = bits._replace(shape=p.shape)

    def write(self, status: str, message: str = "") -> None:
        """Writes both files, the JSON one last: it says that the rank has finished."""
        self._folder.mkdir(parents=True, exist_ok=True)
        tensors = dict(self._tensors)
        for i, echo in enumerate(self.records.echoes):
            tensors[f"echo/{i}"] = bits_of(echo.weights)
        document = {
            "schema": SCHEMA,
            "index": self._case.index,
            "id": self._case.id,
            "rank": self._rank,
            "status": status,
            "message": message,
            "observed": sorted(self.observed),
            "snapshots": self._snapshots,
            "echoes": [
                {"action": e.action, "backward": e.backward, "unit": e.unit,
                 "parameter": e.parameter}
                for e in self.records.echoes
            ],
            "collectives": [dataclasses.asdict(c) for c in self.records.collectives],
            "in_flight": [dataclasses.asdict(i) for i in self.records.in_flight],
            "races": [dataclasses.asdict(r) for r in self.records.races],
            "races_watched": self.records.races_watched,
            "peak_bytes": {phase: int(n) for phase, n in self.records.peak_bytes.items()},
        }  # fmt: skip
        _replace(self._folder / f"rank-{self._rank}.safetensors", _safetensors(tensors))
        write_json(self._folder / f"rank-{self._rank}.json", document)


def write_ready(results: Path, rank: int, subject: str, version: str) -> None:
    """Says that the subject is imported and this rank about to begin."""
    results.mkdir(parents=True, exist_ok=True)
    document = {"schema": SCHEMA, "subject": subject, "version": version}
    write_json(results / f"ready-{rank}.json", document)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    _replace(path, text.encode("utf-8", "backslashreplace"))


def _scalar(value: float) -> float | str:
    """JSON has no infinity and no NaN."""
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def _safetensors(tensors: Mapping[str, Bits]) -> bytes:
    """The file's bytes. Written here since numpy has no bf16, in which the library needs torch."""
    header: dict[str, Any] = {}
    end = 0
    for name, bits in tensors.items():
        begin, end = end, end + len(bits.data)
        header[name] = {"dtype": bits.type, "shape": bits.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return b"".join([len(text).to_bytes(8, "little"), text, *(b.data for b in tensors.values())])


def _replace(path: Path, content: bytes) -> None:
    """Under another name first, so that nobody reads half of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
