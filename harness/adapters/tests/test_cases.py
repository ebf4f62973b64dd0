"""Reading cases: what is right is read, what is not is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.hand_made import CaseMaker, write_cases
from zeroproof_adapter.cases import CasesError, read_plan

Case = dict[str, Any]


def test_reads_what_was_written(tmp_path: Path) -> None:
    maker = CaseMaker(load_from="/somewhere", options={"bucket": 3}, definition={"a": 1})
    maker.used["tied"] = [[1, 0]] * 6
    plan = read_plan(write_cases(tmp_path, maker))
    (case,) = plan
    assert plan.ranks == case.ranks == 2
    assert case.load_from == Path("/somewhere") and case.save_to is None
    assert [p.elements for p in case.parameters] == [5, 6, 1]
    assert case.units == (("a.weight", "tied"), ("tied", "scalar"))
    assert case.groups[0].betas == (0.875, 0.96875) and case.groups[0].decoupled
    assert [a.kind for a in case.actions[:3]] == ["micro_step", "micro_step", "step"]
    assert [a.synchronise for a in case.actions[:2]] == [False, True]

    loaded, tensors = case.loaded(), maker.tensors()
    assert loaded.initial("scalar").shape == ()
    assert loaded.uses("tied") == 2
    second_use = loaded.gradient(3, 1, 1, "tied")
    assert second_use.shape == (3, 2)
    np.testing.assert_array_equal(second_use.ravel(), tensors["gradient/tied"][3, 1, 1])
    np.testing.assert_array_equal(
        loaded.local_gradient(3, 0, "tied").ravel(), tensors["gradient/tied"][3, 0].sum(axis=0)
    )
    assert loaded.is_used(3, 0, "tied") and not loaded.is_used(3, 1, "tied")
    assert not loaded.local_gradient(3, 1, "tied").any()


def test_micro_steps_count_from_the_first_of_this_part(tmp_path: Path) -> None:
    maker = CaseMaker(first_micro_step=6)
    maker.document["actions"] = [
        {"index": 9, "action": "micro_step", "micro_step": 7, "synchronise": True}
    ]
    case = next(iter(read_plan(write_cases(tmp_path, maker)))).loaded()
    expected = maker.tensors()["gradient/a.weight"][1, 0, 0]
    np.testing.assert_array_equal(case.gradient(7, 0, 0, "a.weight"), expected)


def test_values_of_a_case_cannot_be_changed(tmp_path: Path) -> None:
    case = next(iter(read_plan(write_cases(tmp_path, CaseMaker())))).loaded()
    with pytest.raises(ValueError, match="read-only"):
        case.initial("tied")[0] = 1


def test_tensors_are_read_on_demand(tmp_path: Path) -> None:
    case = next(iter(read_plan(write_cases(tmp_path, CaseMaker()))))
    with pytest.raises(CasesError, match=r"use loaded\(\)"):
        case.initial("tied")


def drop(key: str) -> Callable[[Case], object]:
    return lambda case: case.pop(key)


def put(key: str, value: Any) -> Callable[[Case], object]:
    return lambda case: case.update({key: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("stage"), "hand/made.: stage is missing"),
        (put("colour", 1), "unknown key colour"),
        (put("stage", 4), "stage is 4, not an integer from 0 to 3"),
        (put("stage", True), "stage is True"),
        (put("stage", 1.0), r"stage is 1\.0"),
        (put("precision", "fp8"), "precision is 'fp8', none of fp32, bf16, fp16"),
        (put("overlap", 1), "overlap is 1, neither true nor false"),
        (put("clip_norm", "1"), "clip_norm is '1', not a number"),
        (put("tensors", "../x"), "not the name of a file"),
        (put("save_to", ""), "save_to is '', neither a folder nor null"),
        (put("units", [["nobody"]]), "a unit uses nobody, which is no parameter"),
        (put("units", ["tied"]), "'tied' is not an array"),
        (put("units", [["tied", "tied"]]), "names a parameter twice"),
        (put("features", [1]), "1 is not a text"),
        (put("options", []), "options is"),
        (put("loss_scale", {"initial": 1}), "loss_scale: factor is missing"),
        (put("actions", [{"index": 0, "action": "dance"}]), "unknown action dance"),
        (put("actions", [{"index": 0, "action": "clip"}]), r"actions\[0\]: norm is missing"),
        (put("actions", [{"index": 0, "action": "freeze", "parameter": "x"}]), "names x"),
        (put("actions", [{"index": 0, "action": "add_group", "group": 1}]), "group 1 of 1"),
        (put("actions", [{"index": 0, "action": "reload"}]), "load_from is null"),
        (lambda case: case["parameters"][0].update(shape=[-1]), "not a list of sizes"),
        (lambda case: case["parameters"][0].update(name="tied"), "the same name"),
        (lambda case: case["parameters"][0].update(group=2), "is in group 2 of 1"),
        (lambda case: case["groups"][0].update(decay="none"), "decay is 'none'"),
    ],
)
def test_a_wrong_case_is_named(
    tmp_path: Path, change: Callable[[Case], object], message: str
) -> None:
    write_cases(tmp_path, CaseMaker())
    path = tmp_path / "cases.json"
    document = json.loads(path.read_text())
    change(document["cases"][0])
    path.write_text(json.dumps(document))
    with pytest.raises(CasesError, match=message):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cases.json: Expecting"),
        ("[]", "an object is expected"),
        ('{"schema": "x", "schema": "x"}', "key schema stands twice"),
        ('{"schema": NaN}', "NaN is no JSON"),
        ('{"schema": "zeroproof.cases/2"}', "not 'zeroproof.cases/1'"),
        ('{"schema": "zeroproof.cases/1", "ranks": 0, "cases": []}', "ranks is 0"),
        ('{"schema": "zeroproof.cases/1", "ranks": 1, "cases": [], "x": 0}', "unknown key x"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "cases.json").write_text(text)
    with pytest.raises(CasesError, match=message):
        read_plan(tmp_path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(CasesError, match="No such file"):
        read_plan(tmp_path)


Tensors = dict[str, Any]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("initial/tied"), "tensor initial/tied is missing"),
        (lambda t: t.update(more=np.zeros(1, np.float32)), "unknown tensor more"),
        (lambda t: t.update({"used/tied": np.ones((6, 2))}), "used/tied is float64"),
        (lambda t: t.update({"used/tied": np.ones((6, 3), np.float32)}), "not .6, 2."),
        (lambda t: t.update({"initial/tied": np.ones((6,), np.float32)}), "has shape .6,."),
        (
            lambda t: t.update({"gradient/scalar": np.ones((6, 2, 2, 1), np.float32)}),
            "has 2 uses; 1 units use it",
        ),
        (
            lambda t: [t.update({n: t[n][:5]}) for n in list(t) if n[0] != "i"],
            "nothing for micro-step 5",
        ),
    ],
)
def test_wrong_tensors_are_named(
    tmp_path: Path, change: Callable[[Tensors], object], message: str
) -> None:
    write_cases(tmp_path, CaseMaker())
    path = tmp_path / "case-0000.safetensors"
    tensors = dict(load_file(path))
    change(tensors)
    save_file(tensors, path)
    with pytest.raises(CasesError, match=message):
        next(iter(read_plan(tmp_path))).loaded()


@pytest.mark.parametrize("content", [None, b"", b"\x08\0\0\0\0\0\0\0{}"])
def test_a_file_without_tensors(tmp_path: Path, content: bytes | None) -> None:
    write_cases(tmp_path, CaseMaker())
    path = tmp_path / "case-0000.safetensors"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(CasesError, match="case-0000"):
        next(iter(read_plan(tmp_path))).loaded()
