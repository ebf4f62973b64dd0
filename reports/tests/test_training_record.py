from __future__ import annotations

from typing import Any, Callable

import pytest

from tests.conftest import DATA, Change, ReadRuns, training
from tests.make_sample import text_of
from tests.make_training_sample import MAKERS, PHI
from zeroproof_report.training.at_rest import formula_by_state
from zeroproof_report.training.record import Run, read_runs


def test_samples_are_those_that_the_generator_makes() -> None:
    for name, maker in MAKERS.items():
        assert (DATA / f"training-{name}.json").read_text() == text_of(maker().record())


def test_a_run_is_read(runs: list[Run]) -> None:
    run = runs[2]
    assert (run.plan.stage, run.plan.ranks, run.plan.precision) == (2, 2, "bf16")
    assert run.nominal_bytes == 2 * PHI + 14 * PHI / 2 == run.measured.at_rest_total
    assert run.measured.peak == run.predicted.peak + 128
    assert run.state_elements == 2 * PHI
    assert runs[3].state_elements == 3 * PHI
    assert len(run.timeline.seconds) == len(run.timeline.phases) == len(run.timeline.live["buffer"])


def test_measured_bytes_are_of_the_rank_that_holds_the_most(changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        document["by_rank"][1]["peak_bytes"]["forward"] *= 3
        document["by_rank"][1]["at_rest_bytes"]["buffer"] += 64
        document["by_rank"][0]["host_peak_bytes"] = 7

    (run,) = changed_runs(stage1=change)
    assert run.measured.peak == run.by_rank[1].peaks["forward"]
    assert run.measured.peaks["backward"] == run.by_rank[0].peaks["backward"]
    assert run.measured.at_rest_total == int(run.nominal_bytes) + 64
    assert run.measured.host_peak == 7


def test_labels_tell_runs_apart(
    runs: list[Run], changed_training: Callable[[str, Change], Any]
) -> None:
    assert [run.label for run in runs] == [
        "stage 0",
        "stage 1",
        "stage 2",
        "stage 3",
        "stage 3, recompute 1",
    ]

    def cut(document: dict[str, Any]) -> None:
        document["plan"].update(
            tensor_parallel=4,
            blocks_per_checkpoint=2,
            partition_checkpoints=True,
            offload_checkpoints=True,
            contiguous_checkpoints=True,
        )

    same = ("a", training("stage1"))
    other = ("b", changed_training("stage1", cut))
    assert [r.label for r in read_runs([same, other])] == [
        "stage 1, 2 ranks",
        "stage 1, 2x4 ranks, recompute 2, Pa+cpu, MD",
    ]
    assert [r.label for r in read_runs([same, same])] == ["stage 1, no. 1", "stage 1, no. 2"]


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_the_parts_of_the_formula_are_the_whole(precision: str, changed_runs: ReadRuns) -> None:
    def change(document: dict[str, Any]) -> None:
        document["plan"]["precision"] = precision
        if precision == "fp32":  # K is 8: no masters
            document["formula_bytes"].update(
                stage_1=8 * PHI + 8 * PHI / 2, stage_2=4 * PHI + 12 * PHI / 2
            )

    for run in changed_runs(stage0=change, stage1=change, stage2=change, stage3=change):
        assert sum(formula_by_state(run).values()) == run.nominal_bytes
