"""Reads what `zeroproof verify --run` writes: cases.json and the tensors of each case.

Reading is strict: a key that is unknown, missing or of a wrong type is a `CasesError` that names
the place. The format is docs/protocol.md.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

SCHEMA = "zeroproof.cases/1"

FloatArray = npt.NDArray[np.float32]


class CasesError(Exception):
    """The folder of cases is not what the protocol says."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    shape: tuple[int, ...]
    group: int  # of Case.groups
    trainable: bool

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Group:
    """Settings of Adam for the parameters of one optimizer group."""

    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    decoupled: bool  # AdamW; else L2, whose decay enters the gradient

    @property
    def betas(self) -> tuple[float, float]:
        return self.beta1, self.beta2


@dataclasses.dataclass(frozen=True)
class LossScale:
    """The dynamic loss scale of fp16."""

    initial: float
    factor: float
    growth_interval: int  # steps without overflow until it grows
    hysteresis: int  # overflows until it backs off
    minimum: float


@dataclasses.dataclass(frozen=True)
class Action:
    """One action of a program. What a kind of action does not have is None."""

    index: int  # in the whole program
    kind: str
    micro_step: int | None = None
    synchronise: bool | None = None
    by: str | None = None
    group: int | None = None
    parameter: str | None = None
    value: float | None = None  # learning rate, norm or factor


@dataclasses.dataclass(frozen=True)
class Tensors:
    """The values of a case, by name of the parameter."""

    initial: Mapping[str, FloatArray]  # in the parameter's shape
    gradient: Mapping[str, FloatArray]  # [micro-steps K, ranks N, uses U, elements]
    used: Mapping[str, FloatArray]  # [K, N], 1 or 0


@dataclasses.dataclass(frozen=True)
class Case:
    index: int
    id: str
    ranks: int
    stage: int
    precision: str  # fp32, bf16 or fp16
    micro_steps: int  # of an accumulation window, GA
    parameters: tuple[Parameter, ...]  # in the order of registration
    units: tuple[tuple[str, ...], ...]  # names of the parameters that each uses, in forward order
    groups: tuple[Group, ...]
    bucket_elements: int
    overlap: bool
    prefetch: bool
    clip_norm: float  # 0: do not clip
    loss_scale: LossScale | None
    model: str  # dot or echo
    hostile: bool  # delay and poison collectives, if you can
    features: tuple[str, ...]
    options: Mapping[str, Any]  # settings of the subject's own
    first_micro_step: int
    save_to: Path | None
    load_from: Path | None
    actions: tuple[Action, ...]
    tensors_file: Path
    tensors: Tensors | None = dataclasses.field(default=None, repr=False, compare=False)

    def loaded(self) -> Case:
        """The same case with its tensors read. Raises CasesError."""
        return dataclasses.replace(self, tensors=_read_tensors(self))

    def parameter(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def late_groups(self) -> frozenset[int]:
        """Groups whose parameters stay out of the optimizer until `add_group`."""
        return frozenset(
            a.group for a in self.actions if a.kind == "add_group" and a.group is not None
        )

    def initial(self, name: str) -> FloatArray:
        """The weights before training in fp32, shaped as the parameter, not yet rounded."""
        return self._tensors.initial[name]

    def uses(self, name: str) -> int:
        """How many uses of the parameter contribute to its gradient; U of `gradient/NAME`."""
        return int(self._tensors.gradient[name].shape[2])

    def gradient(self, micro_step: int, rank: int, use: int, name: str) -> FloatArray:
        """What one use of a parameter contributes, unscaled, shaped as the parameter.

        `micro_step` counts as the actions do. Uses from `uses(name)` on contribute nothing.
        """
        rows = self._tensors.gradient[name]
        return cast(
            FloatArray,
            rows[micro_step - self.first_micro_step, rank, use].reshape(self.parameter(name).shape),
        )

    def local_gradient(self, micro_step: int, rank: int, name: str) -> FloatArray:
        """The rank's whole gradient of a micro-step: the sum over uses, zero where it has none."""
        total: FloatArray = np.zeros(self.parameter(name).shape, np.float32)
        if self.is_used(micro_step, rank, name):
            for use in range(self.uses(name)):
                total += self.gradient(micro_step, rank, use, name)
        return total

    def is_used(self, micro_step: int, rank: int, name: str) -> bool:
        """Whether the rank uses the parameter in that micro-step; if not, it leaves it out."""
        return bool(self._tensors.used[name][micro_step - self.first_micro_step, rank] != 0)

    @property
    def _tensors(self) -> Tensors:
        if self.tensors is None:
            raise CasesError(f"case {self.id}: its tensors have not been read; use loaded()")
        return self.tensors


@dataclasses.dataclass(frozen=True)
class Plan:
    """All cases of one launch."""

    ranks: int  # world size
    cases: tuple[Case, ...]  # without their tensors, which may be large

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)


def read_plan(folder: Path, expected_ranks: int | None = None) -> Plan:
    """Reads `folder`/cases.json, for that world size if one is expected. Raises CasesError.

    Tensors are read by `Case.loaded()`.
    """
    path = Path(folder) / "cases.json"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CasesError(f"{path}: {error}") from error
    try:
        document = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant)
    except ValueError as error:
        raise CasesError(f"{path}: {error}") from error
    top = _Object(document, str(path))
    if (schema := top.text("schema")) != SCHEMA:
        raise CasesError(f"{path}: the schema is {schema!r}, not {SCHEMA!r}")
    ranks = top.integer("ranks", 1)
    if expected_ranks not in (None, ranks):
        raise CasesError(f"{path}: the cases are for {ranks} ranks, not {expected_ranks}")
    cases = tuple(_read_case(one, ranks, Path(folder)) for one in top.objects("cases"))
    top.end()
    return Plan(ranks, cases)


class _Object:
    """A JSON object, each key of which is taken once and with its type."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise CasesError(f"{place}: an object is expected")
        self._left: dict[str, Any] = dict(value)
        self.place = place

    def error(self, what: str) -> CasesError:
        return CasesError(f"{self.place}: {what}")

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise self.error(f"{key} is missing")
        return self._left.pop(key)

    def integer(self, key: str, least: int = 0, most: int = 2**53) -> int:
        value = self.take(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(f"{key} is {value!r}, not an integer from {least} to {most}")
        return value

    def number(self, key: str) -> float:
        value = self.take(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self.error(f"{key} is {value!r}, not a number")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.error(f"{key} is {value!r}, neither true nor false")
        return value

    def text(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str):
            raise self.error(f"{key} is {value!r}, not a text")
        return value

    def choice(self, key: str, *choices: str) -> str:
        value = self.text(key)
        if value not in choices:
            raise self.error(f"{key} is {value!r}, none of {', '.join(choices)}")
        return value

    def folder(self, key: str) -> Path | None:
        value = self.take(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.error(f"{key} is {value!r}, neither a folder nor null")
        return None if value is None else Path(value)

    def array(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list):
            raise self.error(f"{key} is {value!r}, not an array")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        return _texts(self.array(key), f"{self.place}, {key}")

    def objects(self, key: str) -> Iterator[_Object]:
        for i, value in enumerate(self.array(key)):
            yield _Object(value, f"{self.place}, {key}[{i}]")

    def object(self, key: str) -> _Object | None:
        """The object under an optional key; null and absence are the same."""
        value = self._left.pop(key, None)
        return None if value is None else _Object(value, f"{self.place}, {key}")

    def entries(self, key: str) -> dict[str, Any]:
        value = self.take(key)
        if not isinstance(value, dict):
            raise self.error(f"{key} is {value!r}, not an object")
        return value

    def discard(self, key: str) -> None:
        self._left.pop(key, None)

    def end(self) -> None:
        if self._left:
            raise self.error(f"unknown key {next(iter(self._left))}")


def _texts(values: list[Any], place: str) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise CasesError(f"{place}: {value!r} is not a text")
    return tuple(values)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)} stands twice")
    return values


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _read_case(o: _Object, ranks: int, folder: Path) -> Case:
    index, id_ = o.integer("index"), o.text("id")
    o.place = f"{o.place} ({id_})"
    tensors = o.text("tensors")
    if Path(tensors).name != tensors:
        raise o.error(f"tensors is {tensors!r}, not the name of a file beside cases.json")
    case = Case(
        index=index,
        id=id_,
        ranks=ranks,
        stage=o.integer("stage", 0, 3),
        precision=o.choice("precision", "fp32", "bf16", "fp16"),
        micro_steps=o.integer("micro_steps", 1),
        parameters=tuple(_read_parameter(p) for p in o.objects("parameters")),
        units=tuple(
            _read_unit(u, f"{o.place}, units[{i}]") for i, u in enumerate(o.array("units"))
        ),
        groups=tuple(_read_group(g) for g in o.objects("groups")),
        bucket_elements=o.integer("bucket_elements", 1),
        overlap=o.flag("overlap"),
        prefetch=o.flag("prefetch"),
        clip_norm=o.number("clip_norm"),
        loss_scale=_read_loss_scale(o.object("loss_scale")),
        model=o.choice("model", "dot", "echo"),
        hostile=o.choice("surroundings", "plain", "hostile") == "hostile",
        features=o.texts("features"),
        options=o.entries("options"),
        first_micro_step=o.integer("first_micro_step"),
        save_to=o.folder("save_to"),
        load_from=o.folder("load_from"),
        actions=tuple(_read_action(a) for a in o.objects("actions")),
        tensors_file=folder / tensors,
    )
    o.discard("definition")  # how the case came to be, which is not for subjects
    o.end()
    _check_names(case, o)
    return case


def _read_parameter(o: _Object) -> Parameter:
    name, shape = o.text("name"), o.array("shape")
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise o.error(f"shape is {shape!r}, not a list of sizes")
    parameter = Parameter(name, tuple(shape), o.integer("group"), o.flag("trainable"))
    o.end()
    return parameter


def _read_unit(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise CasesError(f"{place}: {value!r} is not an array")
    return _texts(value, place)


def _read_group(o: _Object) -> Group:
    group = Group(
        learning_rate=o.number("learning_rate"),
        beta1=o.number("beta1"),
        beta2=o.number("beta2"),
        epsilon=o.number("epsilon"),
        weight_decay=o.number("weight_decay"),
        decoupled=o.choice("decay", "decoupled", "l2") == "decoupled",
    )
    o.end()
    return group


def _read_loss_scale(o: _Object | None) -> LossScale | None:
    if o is None:
        return None
    scale = LossScale(
        initial=o.number("initial"),
        factor=o.number("factor"),
        growth_interval=o.integer("growth_interval", 1),
        hysteresis=o.integer("hysteresis", 1),
        minimum=o.number("minimum"),
    )
    o.end()
    return scale


def _read_action(o: _Object) -> Action:
    action = Action(o.integer("index"), o.text("action"))
    kind, more = action.kind, dict[str, Any]()
    if kind == "micro_step":
        more = {"micro_step": o.integer("micro_step"), "synchronise": o.flag("synchronise")}
    elif kind == "zero_grad":
        more = {"by": o.choice("by", "optimizer", "model")}
    elif kind == "rate":
        more = {"group": o.integer("group"), "value": o.number("learning_rate")}
    elif kind == "clip":
        more = {"value": o.number("norm")}
    elif kind in ("scale_gradient", "scale_weight"):
        more = {"parameter": o.text("parameter"), "value": o.number("factor")}
    elif kind in ("freeze", "unfreeze"):
        more = {"parameter": o.text("parameter")}
    elif kind == "add_group":
        more = {"group": o.integer("group")}
    elif kind not in ("step", "evaluate", "read", "save", "load", "reload"):
        raise o.error(f"unknown action {kind}")
    o.end()
    return dataclasses.replace(action, **more)


def _check_names(case: Case, o: _Object) -> None:
    """That whatever the case refers to by name or number exists."""
    names = [p.name for p in case.parameters]
    if len(set(names)) != len(names):
        raise o.error("two parameters have the same name")
    for p in case.parameters:
        if p.group >= len(case.groups):
            raise o.error(f"parameter {p.name} is in group {p.group} of {len(case.groups)}")
    for unit in case.units:
        for name in unit:
            if name not in names:
                raise o.error(f"a unit uses {name}, which is no parameter")
        if len(set(unit)) != len(unit):
            raise o.error("a unit names a parameter twice")
    for a in case.actions:
        if a.parameter is not None and a.parameter not in names:
            raise o.error(f"action {a.index} names {a.parameter}, which is no parameter")
        if a.group is not None and a.group >= len(case.groups):
            raise o.error(f"action {a.index} names group {a.group} of {len(case.groups)}")
        if a.kind == "reload" and case.load_from is None:
            raise o.error("there is a reload, but load_from is null")


def _read_tensors(case: Case) -> Tensors:
    path = case.tensors_file
    try:
        with safe_open(path, framework="np") as file:
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CasesError(f"{path}: {error}") from error

    def take(name: str, dimensions: int) -> FloatArray:
        if name not in found:
            raise CasesError(f"{path}: tensor {name} is missing")
        tensor = found.pop(name)
        if tensor.dtype != np.float32:
            raise CasesError(f"{path}: tensor {name} is {tensor.dtype}, not float32")
        if tensor.ndim != dimensions:
            raise CasesError(f"{path}: tensor {name} has shape {tensor.shape}")
        tensor.setflags(write=False)
        return cast(FloatArray, tensor)

    def check(name: str, tensor: FloatArray, shape: tuple[int, ...]) -> None:
        if tensor.shape != shape:
            raise CasesError(f"{path}: tensor {name} has shape {tensor.shape}, not {shape}")

    numbers = [a.micro_step for a in case.actions if a.micro_step is not None]
    tensors = Tensors({}, {}, {})
    for p in case.parameters:
        initial = take(f"initial/{p.name}", len(p.shape))
        gradient = take(f"gradient/{p.name}", 4)
        used = take(f"used/{p.name}", 2)
        micro_steps, _, uses, _ = gradient.shape
        units = sum(p.name in unit for unit in case.units)
        if uses > units:
            raise CasesError(f"{path}: gradient/{p.name} has {uses} uses; {units} units use it")
        check(f"initial/{p.name}", initial, p.shape)
        check(f"gradient/{p.name}", gradient, (micro_steps, case.ranks, uses, p.elements))
        check(f"used/{p.name}", used, (micro_steps, case.ranks))
        for number in numbers:
            if not 0 <= number - case.first_micro_step < micro_steps:
                raise CasesError(f"{path}: gradient/{p.name} has nothing for micro-step {number}")
        cast(dict[str, FloatArray], tensors.initial)[p.name] = initial
        cast(dict[str, FloatArray], tensors.gradient)[p.name] = gradient
        cast(dict[str, FloatArray], tensors.used)[p.name] = used
    if found:
        raise CasesError(f"{path}: unknown tensor {next(iter(found))}")
    return tensors
