from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ReadRuns
from zeroproof_report.page import Chapter
from zeroproof_report.report import chapters_of_training
from zeroproof_report.training.losses import largest_difference
from zeroproof_report.training.record import CATEGORIES, Run
from zeroproof_report.training.timelines import first_step, spread

PNG = b"\x89PNG\r\n"


def names(chapter: Chapter) -> list[str]:
    return [figure.name for figure in chapter.figures]


def unchanged(_: dict[str, Any]) -> None:
    pass


def ended_early(document: dict[str, Any]) -> None:
    """As a record is written when a device was too small."""
    document.update(complete=False, ended_by="too small", steps=[], traffic=[])
    document.update(tokens_per_second=None, by_rank=[])
    document["timeline"] = {key: [] for key in document["timeline"]}


def test_every_kind_is_drawn(runs: list[Run]) -> None:
    loss, at_rest, peaks, timelines = chapters_of_training(runs)
    assert names(loss) == ["losses"]
    assert names(at_rest) == ["at-rest"]
    assert names(peaks) == ["peaks"]
    assert names(timelines) == [f"timeline-{i}" for i in range(1, 6)]
    for chapter in (loss, at_rest, peaks, timelines):
        assert not chapter.left_out
        for figure in chapter.figures:
            assert figure.png.startswith(PNG)
            assert len(figure.description) > 60
    assert "digit for digit" in loss.figures[0].description
    assert "stage 3, recompute 1: +0.01 %" in peaks.figures[0].description


def test_what_a_record_does_not_hold_is_left_out_and_told(changed_runs: ReadRuns) -> None:
    chapters = chapters_of_training(changed_runs(stage0=ended_early, stage1=unchanged))
    assert [len(chapter.figures) for chapter in chapters] == [1, 1, 1, 1]
    for chapter in chapters:
        assert len(chapter.left_out) == 1
        assert "stage 0" in chapter.left_out[0]
    chapters = chapters_of_training(changed_runs(stage0=ended_early))
    assert not any(chapter.figures for chapter in chapters)
    assert all(chapter.left_out for chapter in chapters)


def test_a_run_that_had_no_step_to_take(changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        ended_early(document)
        document.update(complete=True, ended_by=None, resumed_at=document["plan"]["steps"])

    chapters = chapters_of_training(changed_runs(stage0=change))
    assert not any(chapter.figures for chapter in chapters)
    assert all(chapter.left_out for chapter in chapters)


def test_one_step_alone_and_losses_that_are_not_finite(changed_runs: ReadRuns) -> None:
    def single(document: dict[str, Any]) -> None:
        del document["steps"][1:]
        document["timeline"] = {key: [] for key in document["timeline"]}

    def diverged(document: dict[str, Any]) -> None:
        for step in document["steps"][3:]:
            step["loss"] = None

    loss, at_rest, _, timelines = chapters_of_training(changed_runs(stage0=single, stage1=diverged))
    assert names(loss) == ["losses"]
    assert names(at_rest) == ["at-rest"]
    assert names(timelines) == ["timeline-2"]
    assert "second step" in timelines.left_out[0]


def test_only_runs_that_should_learn_alike_are_compared(changed_runs: ReadRuns) -> None:
    def other(document: dict[str, Any]) -> None:
        document["plan"]["seed"] = 2

    def off(document: dict[str, Any]) -> None:
        document["steps"][4]["loss"] += 0.125

    assert largest_difference(changed_runs(stage0=unchanged, stage1=other)) is None
    assert largest_difference(changed_runs(stage0=unchanged, stage1=unchanged)) == 0
    difference = largest_difference(changed_runs(stage0=unchanged, stage1=off))
    assert difference == pytest.approx(0.125)


def test_a_step_has_all_its_micro_steps_and_ends_before_the_next(changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        phases = ["forward", "backward"] * 2 + ["reduce", "step", "step"]
        phases += ["forward", "backward"]
        document["timeline"] = {
            "seconds": [0.5 + 0.125 * i for i in range(len(phases))],
            "phase": phases,
            **{c: [1_000_000 * (i + 1) for i in range(len(phases))] for c in CATEGORIES},
        }

    def alone(document: dict[str, Any]) -> None:
        change(document)
        document["timeline"] = {key: column[:7] for key, column in document["timeline"].items()}

    first, second = changed_runs(stage0=change, stage1=alone)
    step = first_step(first)
    assert [band.name for band in step.bands] == [*["forward", "backward"] * 2, "reduce", "step"]
    assert step.at[-1] == 875
    assert step.live["buffer"] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert first_step(second).at[-1] == 750
    assert first_step(second).live["buffer"] == [1, 2, 3, 4, 5, 6, 6]


def test_labels_are_spread_without_overlap() -> None:
    assert spread([0.5], [0.1], 1) == [0.5]
    for wanted in ([0.5, 0.5, 0.51], [0.99, 1.0, 1.0], [0.0, 0.0, 0.02], [0.1, 0.9, 0.95]):
        places = spread(wanted, [0.1] * 3, 1)
        assert all(b - a >= 0.1 - 1e-9 for a, b in zip(places, places[1:]))
        assert places[0] >= 0.05 - 1e-9
        assert places[-1] <= 0.95 + 1e-9


def test_many_micro_steps_and_many_runs(changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        timeline = document["timeline"]
        count = len(timeline["phase"])
        timeline["phase"] = ["forward" if i // 2 % 2 else "backward" for i in range(count)]

    (run,) = changed_runs(stage3=change)
    assert names(chapters_of_training([run])[3]) == ["timeline-1"]
    assert names(chapters_of_training([run] * 12)[1]) == ["at-rest"]


@pytest.mark.parametrize("name", ["$\\frac{$", "_hidden", "x" * 99, "a\x1bb", "漢字", "$$"])
def test_foreign_names_cannot_break_a_figure(name: str, changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        document["plan"]["model"]["name"] = name

    chapters = chapters_of_training(changed_runs(stage0=change, stage1=unchanged))
    assert sum(len(chapter.figures) for chapter in chapters) == 5
