"""The program of a rank: what it asks of a trainer, in which order, and what failures leave."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.hand_made import CaseMaker, read_evidence, window, write_cases
from zeroproof_adapter import Case, Rejected, State, StepReport, Trainer, Unavailable
from zeroproof_adapter.cases import CasesError, read_plan
from zeroproof_adapter.runner import find_rank, main, run_case
from zeroproof_adapter.trainer import check_declaration


class Diary(Trainer):
    """Writes down what it is asked to do."""

    name = "diary"
    stages = frozenset({1})
    precisions = frozenset({"fp32"})
    observes: Set[str] = frozenset({"weights"})
    pages: ClassVar[list[str]] = []

    def __init__(self, case: Case, rank: int, ranks: int) -> None:
        self.pages.clear()
        self.case = case

    def note(self, *words: object) -> None:
        self.pages.append(" ".join(map(str, words)))

    def enter(self, phase: str) -> None:
        self.note(self.action, phase)

    def micro_step(self, micro_step: int, synchronise: bool) -> None:
        self.note("micro_step", micro_step, synchronise)

    def step(self) -> StepReport:
        self.note("step")
        return StepReport(skipped=self.action == 5)

    def read(self, after_step: bool) -> State:
        self.note("read", after_step)
        return State([], {p.name: np.zeros(p.shape, np.float32) for p in self.case.parameters})

    def close(self) -> None:
        self.note("close")


class Everything(Diary):
    def zero_grad(self, by: str) -> None:
        self.note("zero_grad", by)

    def evaluate(self) -> None:
        self.note("evaluate")

    def save(self, folder: Path) -> None:
        assert folder.is_dir()
        self.note("save", folder)

    def load(self, folder: Path) -> None:
        self.note("load", folder)

    def set_learning_rate(self, group: int, value: float) -> None:
        self.note("rate", group, value)

    def clip(self, norm: float) -> None:
        self.note("clip", norm)

    def scale_gradient(self, parameter: str, factor: float) -> None:
        self.note("scale_gradient", parameter, factor)

    def scale_weight(self, parameter: str, factor: float) -> None:
        self.note("scale_weight", parameter, factor)

    def freeze(self, parameter: str) -> None:
        self.note("freeze", parameter)

    def unfreeze(self, parameter: str) -> None:
        self.note("unfreeze", parameter)

    def add_group(self, group: int) -> None:
        self.note("add_group", group)


def run(trainer: type[Trainer], tmp_path: Path, maker: CaseMaker) -> tuple[bool, dict[str, Any]]:
    """Rank 1 of a case: whether to go on, and its evidence."""
    (case,) = read_plan(write_cases(tmp_path / "cases", maker))
    going_on = run_case(trainer, case, 1, tmp_path / "results")
    return going_on, read_evidence(tmp_path / "results", 1)[0]


def test_the_order_of_calls(tmp_path: Path) -> None:
    maker = CaseMaker(actions=window(0, 2) + window(2, 2))
    going_on, document = run(Diary, tmp_path, maker)
    assert going_on and document["status"] == "completed"
    assert Diary.pages == [
        *("-1 read", "read False"),
        *("0 forward", "micro_step 0 False", "1 forward", "micro_step 1 True"),
        *("2 step", "step", "2 read", "read True"),
        *("3 forward", "micro_step 2 False", "4 forward", "micro_step 3 True"),
        *("5 step", "step", "5 read", "read False", "close"),
    ]
    assert [s["action"] for s in document["snapshots"]] == [-1, 2, 5]


def test_every_action(tmp_path: Path) -> None:
    actions: list[dict[str, Any]] = [
        {"action": "reload"},
        {"action": "zero_grad", "by": "model"},
        {"action": "evaluate"},
        {"action": "read"},
        {"action": "rate", "group": 0, "learning_rate": 0.5},
        {"action": "clip", "norm": 2},
        {"action": "scale_gradient", "parameter": "tied", "factor": 4},
        {"action": "scale_weight", "parameter": "tied", "factor": 8},
        {"action": "freeze", "parameter": "scalar"},
        {"action": "unfreeze", "parameter": "scalar"},
        {"action": "add_group", "group": 0},
        {"action": "load"},
        {"action": "save"},
        {"action": "load"},
    ]
    maker = CaseMaker(actions=actions, load_from="/from", save_to=str(tmp_path / "to"))
    _, document = run(Everything, tmp_path, maker)
    assert document["status"] == "completed", document["message"]
    assert [s["action"] for s in document["snapshots"]] == list(range(14))
    assert [page for page in Diary.pages if not page[0].isdigit() and page[:4] != "read"] == [
        "load /from",
        "zero_grad model",
        "evaluate",
        "rate 0 0.5",
        "clip 2.0",
        "scale_gradient tied 4.0",
        "scale_weight tied 8.0",
        "freeze scalar",
        "unfreeze scalar",
        "add_group 0",
        "load /from",
        f"save {tmp_path}/results/0000/checkpoints/12",
        f"load {tmp_path}/results/0000/checkpoints/12",
        f"save {tmp_path}/to",
        "close",
    ]


@pytest.mark.parametrize(
    "action",
    [
        {"action": "zero_grad", "by": "model"},
        {"action": "evaluate"},
        {"action": "rate", "group": 0, "learning_rate": 1},
        {"action": "clip", "norm": 1},
        {"action": "scale_gradient", "parameter": "tied", "factor": 1},
        {"action": "scale_weight", "parameter": "tied", "factor": 1},
        {"action": "freeze", "parameter": "tied"},
        {"action": "unfreeze", "parameter": "tied"},
        {"action": "add_group", "group": 0},
        {"action": "save"},
        {"action": "load"},
        {"action": "reload"},
    ],
)
def test_an_action_that_is_not_overridden_is_refused_before_work(
    tmp_path: Path, action: dict[str, Any]
) -> None:
    Diary.pages.clear()
    maker = CaseMaker(actions=[*window(0, 2), action], load_from="/from")
    going_on, document = run(Diary, tmp_path, maker)
    assert going_on and document["status"] == "rejected"
    assert document["message"] == f"diary does not support the action {action['action']}"
    assert Diary.pages == [] and document["snapshots"] == []


def test_saving_at_the_end_is_refused_too(tmp_path: Path) -> None:
    going_on, document = run(Diary, tmp_path, CaseMaker(save_to="/to", actions=window(0, 2)))
    assert going_on and document["message"] == "diary does not support the action save"


class Failing(Diary):
    error: ClassVar[Exception] = RuntimeError("a fault\nin two lines")

    def step(self) -> StepReport:
        if self.action > 2:
            raise self.error
        return StepReport()


def test_a_failure_keeps_what_was_seen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    going_on, document = run(Failing, tmp_path, CaseMaker(actions=window(0, 2) + window(2, 2)))
    assert not going_on and document["status"] == "failed"
    assert document["message"].startswith("RuntimeError: a fault in two lines (test_runner.py:")
    assert document["message"].endswith(", step)")
    assert [s["action"] for s in document["snapshots"]] == [-1, 2]
    assert document["observed"] == ["weights"] and Diary.pages[-1] == "close"
    assert "Traceback" in capfd.readouterr().err


def test_a_refusal_after_work_has_begun_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "error", Rejected("too late"))
    going_on, document = run(Failing, tmp_path, CaseMaker(actions=window(0, 2) + window(2, 2)))
    assert not going_on and document["status"] == "failed" and "too late" in document["message"]


class Refusing(Diary):
    error: ClassVar[Exception] = Rejected("not with two units")

    def __init__(self, case: Case, rank: int, ranks: int) -> None:
        raise self.error


def test_a_refusal_of_the_constructor(tmp_path: Path) -> None:
    going_on, document = run(Refusing, tmp_path, CaseMaker(actions=[]))
    assert going_on and document["status"] == "rejected"
    assert document["message"] == "not with two units" and document["snapshots"] == []


def test_a_missing_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusing, "error", Unavailable("no GPU"))
    going_on, document = run(Refusing, tmp_path, CaseMaker(actions=[]))
    assert going_on and document["status"] == "environment"


def test_a_checkpoint_that_cannot_be_loaded_here_is_refused(tmp_path: Path) -> None:
    class OfTwoRanks(Everything):
        def load(self, folder: Path) -> None:
            raise Rejected("it was saved by two ranks")

    maker = CaseMaker(load_from="/from", actions=[{"action": "reload"}])
    going_on, document = run(OfTwoRanks, tmp_path, maker)
    assert going_on and document["status"] == "rejected"


def test_wrong_evidence_is_a_failure(tmp_path: Path) -> None:
    class Empty(Diary):
        def read(self, after_step: bool) -> State:
            return State([], {})

    going_on, document = run(Empty, tmp_path, CaseMaker(actions=[]))
    assert not going_on and "EvidenceError: the weights of a.weight" in document["message"]


LAUNCHER_VARIABLES = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
]


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for pair in LAUNCHER_VARIABLES:
        for name in pair:
            # Set first, so that what find_rank() sets is undone.
            monkeypatch.setenv(name, "")
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_launcher")
@pytest.mark.parametrize("names", LAUNCHER_VARIABLES)
def test_finding_the_rank(names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(names[0], "2")
    monkeypatch.setenv(names[1], "3")
    assert find_rank(3) == 2
    with pytest.raises(CasesError, match="for 4 ranks, and this launch has 3"):
        find_rank(4)


@pytest.mark.usefixtures("no_launcher")
def test_without_a_launcher_there_is_one_rank() -> None:
    assert find_rank(1) == 0
    with pytest.raises(CasesError, match="this launch has 1"):
        find_rank(2)


@pytest.mark.usefixtures("no_launcher")
def test_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    cases, results = (
        write_cases(tmp_path, CaseMaker(stage=0), CaseMaker(actions=[])),
        tmp_path / "results",
    )
    main(Diary, [str(cases), str(results)], "2.0")
    assert json.loads((results / "ready-1.json").read_text())["version"] == "2.0"
    assert [read_evidence(results, 1, i)[0]["status"] for i in (0, 1)] == ["rejected", "completed"]


@pytest.mark.usefixtures("no_launcher")
def test_main_without_cases(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main(Diary, [str(tmp_path), str(tmp_path / "results")])
    assert end.value.code == 2 and not (tmp_path / "results").exists()


def test_a_declaration_is_checked() -> None:
    class Nameless(Trainer):
        stages = frozenset({1})

    class Clairvoyant(Diary):
        observes = frozenset({"the future"})

    with pytest.raises(TypeError, match="Nameless does not say its name"):
        check_declaration(Nameless)  # type: ignore[type-abstract]
    with pytest.raises(TypeError, match="'the future'"):
        check_declaration(Clairvoyant)
