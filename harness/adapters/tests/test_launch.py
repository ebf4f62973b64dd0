"""The launcher, with a real trainer on two ranks and with small ones that misbehave."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.hand_made import CaseMaker, read_evidence, window, write_cases
from tests.oracle import assert_conforms


def launch(
    subject: str, cases: Path, results: Path, ranks: int = 2
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zeroproof_adapter.launch", subject, "--ranks", str(ranks)]
    return subprocess.run(
        [*command, str(cases), str(results)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_torch_ddp(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plain, echo, unused, overflow = (CaseMaker(stage=0) for _ in range(4))
    echo.document.update(model="echo", clip_norm=0.5, surroundings="hostile")
    unused.used["tied"] = [[1, 0], [0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]
    overflow.not_finite = [(3, 1, "tied", 2, float("inf"))]
    frozen = CaseMaker(stage=0)
    frozen.document["parameters"][1]["trainable"] = False
    discarding = CaseMaker(
        stage=0,
        actions=[
            {"action": "micro_step", "micro_step": 0, "synchronise": False},
            {"action": "zero_grad", "by": "model"},
            *window(1, 2),
            {"action": "rate", "group": 0, "learning_rate": 0.25},
            *window(3, 2),
            {"action": "read"},
        ],
    )
    refused = CaseMaker(stage=1)
    makers = [plain, echo, unused, frozen, discarding, refused, overflow]
    results = tmp_path / "results"
    done = launch("torch-ddp", write_cases(tmp_path / "cases", *makers), results)
    assert done.returncode == 0, done.stderr
    for i, maker in enumerate(makers[:-2]):
        assert_conforms(maker, results, i, whole=True)
    document = read_evidence(results, 1, 5)[0]
    assert (document["status"], document["message"]) == ("rejected", "torch-ddp has no stage 1")
    document = read_evidence(results, 1, 6)[0]
    assert document["status"] == "rejected" and "not finite" in document["message"]
    document, tensors = read_evidence(results, 0, 1)
    # Three windows of two micro-steps, four uses each, forward and backward; one evaluation.
    assert len(document["echoes"]) == 6 * 4 * 2 + 4
    assert tensors["echo/0"].size == 5
    assert document["snapshots"][1]["live_bytes"] == dict.fromkeys(
        ("parameter", "gradient", "momentum", "variance"), 48
    )
    if "collectives" in document["observed"]:
        assert document["races_watched"] and document["races"] == []
        reduced = [c for c in document["collectives"] if c["traffic"] == "gradient"]
        assert sum(c["in_elements"] for c in reduced) == 3 * 12
        assert {c["action"] for c in reduced} == {1, 4, 8}


@pytest.mark.parametrize("ranks", [1, 3])
def test_torch_ddp_on_other_numbers_of_ranks(tmp_path: Path, ranks: int) -> None:
    pytest.importorskip("torch")
    maker = CaseMaker(stage=0, micro_steps=2)
    maker.ranks = ranks
    results = tmp_path / "results"
    done = launch("torch-ddp", write_cases(tmp_path / "cases", maker), results, ranks)
    assert done.returncode == 0, done.stderr
    assert_conforms(maker, results, whole=True)


def test_torch_ddp_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    saved = str(tmp_path / "saved")
    before = CaseMaker(stage=0, actions=window(0, 2), save_to=saved)
    done = launch("torch-ddp", write_cases(tmp_path / "cases", before), tmp_path / "results")
    assert done.returncode == 0, done.stderr
    after = CaseMaker(stage=0, load_from=saved, first_micro_step=2)
    after.document["actions"] = [
        {**action, "index": 3 + i} for i, action in enumerate([{"action": "reload"}, *window(2, 2)])
    ]
    after.ranks = 3
    more = tmp_path / "more"
    done = launch("torch-ddp", write_cases(tmp_path / "other", after), more, ranks=3)
    assert done.returncode == 0, done.stderr
    old, new = read_evidence(tmp_path / "results", 0), read_evidence(more, 2)
    assert [s["action"] for s in new[0]["snapshots"]] == [3, 6]
    assert new[0]["snapshots"][0]["steps_taken"] == 1
    for i in range(3):
        for kind in ("master", "momentum", "variance"):
            place = f"owned/{i}/{kind}"
            assert (old[1][f"1/{place}"] == new[1][f"0/{place}"]).all()


SMALL = """
    import os, sys, time
    import numpy as np
    from zeroproof_adapter import State, StepReport, Trainer

    print("imported in", os.getpid(), file=sys.stderr)

    class Small(Trainer):
        name, stages, precisions, observes = "small", {1}, {"fp32"}, set()
        def __init__(self, case, rank, ranks):
            self.rank = rank
            assert os.environ["MASTER_ADDR"] == "127.0.0.1" and int(os.environ["MASTER_PORT"])
            assert os.environ["LOCAL_RANK"] == str(rank) and os.environ["OMP_NUM_THREADS"]
        def micro_step(self, micro_step, synchronise):
            pass
        def step(self):
            ACT
            return StepReport()
        def read(self, after_step):
            return State([], {})

    TRAINER = Small
"""


def small(tmp_path: Path, act: str) -> str:
    path = tmp_path / "small.py"
    path.write_text(textwrap.dedent(SMALL).replace("ACT", act))
    return str(path)


def test_a_file_is_a_subject_and_imported_once(tmp_path: Path) -> None:
    cases = write_cases(tmp_path / "cases", CaseMaker(actions=window(0, 2)))
    done = launch(small(tmp_path, "pass"), cases, tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("imported in") == 1 and done.stdout == ""
    assert [read_evidence(tmp_path / "results", r)[0]["status"] for r in (0, 1)] == [
        "completed",
        "completed",
    ]


@pytest.mark.parametrize(
    ("fault", "code"), [("1 / 0", 1), ("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)]
)
def test_one_failing_rank_ends_all(tmp_path: Path, fault: str, code: int) -> None:
    act = f"{fault} if self.rank == 1 else time.sleep(100)"
    cases = write_cases(tmp_path / "cases", CaseMaker(actions=window(0, 2)), CaseMaker())
    begin = time.monotonic()
    done = launch(small(tmp_path, act), cases, tmp_path / "results")
    assert time.monotonic() - begin < 50
    assert done.returncode == code
    assert "rank 1 ended with" in done.stderr
    assert not (tmp_path / "results/0000/rank-0.json").exists()
    if fault == "1 / 0":
        document = json.loads((tmp_path / "results/0000/rank-1.json").read_text())
        assert document["message"].startswith("ZeroDivisionError: division by zero (small.py:")


def test_all_failing_ranks_may_say_why(tmp_path: Path) -> None:
    cases = write_cases(tmp_path / "cases", CaseMaker(actions=window(0, 2)))
    done = launch(small(tmp_path, "time.sleep(self.rank / 2); 1 / 0"), cases, tmp_path / "results")
    assert done.returncode == 1
    assert [read_evidence(tmp_path / "results", r)[0]["status"] for r in (0, 1)] == ["failed"] * 2


@pytest.mark.parametrize("subject", ["torch-ddp", "template_adapter.py"])
def test_another_world_size_than_the_cases(tmp_path: Path, subject: str) -> None:
    if subject == "torch-ddp":
        pytest.importorskip("torch")
    cases = write_cases(tmp_path / "cases", CaseMaker())
    done = launch(subject, cases, tmp_path / "results", ranks=3)
    assert done.returncode == 2
    assert "the cases are for 2 ranks, not 3" in done.stderr


def test_a_missing_package(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy\nprint('noise')\nimport no_such_package\nPACKAGES = ['numpy', 'no-such']\n"
    )
    done = launch(str(tmp_path / "mine.py"), tmp_path, tmp_path / "results")
    assert done.returncode == 3
    assert json.loads(done.stdout) == {
        "environment": "No module named 'no_such_package'",
        "install": "pip install no-such",
    }


def test_an_unknown_subject(tmp_path: Path) -> None:
    done = launch("nothing", tmp_path, tmp_path)
    assert done.returncode == 1 and "there is no subject nothing" in done.stderr
