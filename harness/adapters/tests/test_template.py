"""The template conforms: its evidence against Adam in double precision."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from template_adapter import Template
from tests.hand_made import GROUP, CaseMaker, read_evidence, window, write_cases
from tests.oracle import assert_conforms
from zeroproof_adapter import main_simulated


def run(tmp_path: Path, *makers: CaseMaker) -> Path:
    results = tmp_path / "results"
    main_simulated(Template, [str(write_cases(tmp_path / "cases", *makers)), str(results)])
    return results


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_training(tmp_path: Path, ranks: int) -> None:
    maker = CaseMaker()
    maker.ranks = ranks
    maker.used["scalar"] = [[(k + r) % 2 for r in range(ranks)] for k in range(6)]
    assert_conforms(maker, run(tmp_path, maker))


@pytest.mark.parametrize("decay", ["decoupled", "l2"])
@pytest.mark.parametrize("clip_norm", [0, 0.5, 1000])
def test_clipping_and_decay(tmp_path: Path, decay: str, clip_norm: float) -> None:
    groups = [{**GROUP, "weight_decay": 0.125, "decay": decay}, {**GROUP, "learning_rate": 0.5}]
    maker = CaseMaker(clip_norm=clip_norm, groups=groups)
    maker.document["parameters"][1]["group"] = 1
    assert_conforms(maker, run(tmp_path, maker))


def test_frozen_and_empty(tmp_path: Path) -> None:
    maker = CaseMaker()
    maker.document["parameters"][1]["trainable"] = False
    maker.document["parameters"][0]["shape"] = [0]
    maker.ranks = 3
    assert_conforms(maker, run(tmp_path, maker))


def test_skipping(tmp_path: Path) -> None:
    maker = CaseMaker()
    maker.not_finite = [(2, 1, "tied", 3, float("inf")), (4, 0, "scalar", 0, float("nan"))]
    results = run(tmp_path, maker)
    assert_conforms(maker, results)
    assert [s.get("skipped") for s in read_evidence(results, 0)[0]["snapshots"]] == [
        None,
        False,
        True,
        None,
        True,
    ]


def test_discarding_and_rates(tmp_path: Path) -> None:
    actions: list[dict[str, Any]] = [
        {"action": "micro_step", "micro_step": 0, "synchronise": False},
        {"action": "zero_grad", "by": "model"},
        *window(1, 2),
        {"action": "rate", "group": 0, "learning_rate": 0.25},
        *window(3, 2),
        {"action": "read"},
    ]
    maker = CaseMaker(actions=actions)
    assert_conforms(maker, run(tmp_path, maker))


def test_a_checkpoint_continues_on_other_ranks(tmp_path: Path) -> None:
    saved = str(tmp_path / "saved")
    before = CaseMaker(save_to=saved, actions=window(0, 2))
    run(tmp_path / "before", before)
    after = CaseMaker(load_from=saved, first_micro_step=2)
    after.document["actions"] = [{"action": "reload", "index": 3}] + [
        {**action, "index": 4 + i} for i, action in enumerate(window(2, 2))
    ]
    after.ranks = 3
    results = run(tmp_path / "after", after)
    document, tensors = read_evidence(results, 0)
    assert [s["action"] for s in document["snapshots"]] == [3, 6]
    assert [s["steps_taken"] for s in document["snapshots"]] == [1, 2]
    old = read_evidence(tmp_path / "before/results", 0)[1]
    assert (tensors["0/weights/tied"] == old["1/weights/tied"]).all()


def test_what_it_refuses(tmp_path: Path) -> None:
    cases = [
        CaseMaker(stage=3),
        CaseMaker(precision="bf16"),
        CaseMaker(features=["hierarchy"]),
        CaseMaker(options={"level": 2}),
        CaseMaker(actions=[{"action": "clip", "norm": 1}]),
        CaseMaker(),
    ]
    results = run(tmp_path, *cases)
    seen = [read_evidence(results, 1, i)[0] for i in range(len(cases))]
    assert [(d["status"], d["message"]) for d in seen] == [
        ("rejected", "template has no stage 3"),
        ("rejected", "template does not train in bf16"),
        ("rejected", "template has no hierarchy"),
        ("rejected", "template has no option level"),
        ("rejected", "template does not support the action clip"),
        ("completed", ""),
    ]


def test_as_a_program(tmp_path: Path) -> None:
    cases, results = write_cases(tmp_path / "cases", CaseMaker()), tmp_path / "results"
    folder = Path(__file__).parent.parent
    command = [sys.executable, "-m", "zeroproof_adapter.launch", "template_adapter.py"]
    command += ["--ranks", "2", str(cases), str(results)]
    subprocess.run(command, cwd=folder, check=True)
    ready = json.loads((results / "ready-1.json").read_text())
    assert (ready["subject"], ready["version"]) == ("template", "unversioned")
    assert_conforms(CaseMaker(), results)
