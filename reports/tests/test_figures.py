from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.conftest import Change
from zeroproof_report.figures.drawing import plain
from zeroproof_report.figures.predictions import geometric_mean_error
from zeroproof_report.page import Chapter
from zeroproof_report.record import Record, read_records
from zeroproof_report.report import chapters_of

PNG = b"\x89PNG\r\n"


def names(chapter: Chapter) -> list[str]:
    return [figure.name for figure in chapter.figures]


def test_every_kind_is_drawn(records: list[Record]) -> None:
    bandwidth, volume, steps, predictions = chapters_of(records)
    ops = ("all_reduce", "reduce_scatter", "all_gather")
    assert set(names(bandwidth)) == {f"bandwidth-{op}-fp32-{n}" for op in ops for n in (4, 8)}
    assert names(volume) == ["volume-1", "links-1", "volume-2", "links-2"]
    assert names(steps) == ["steps-1", "steps-2"]
    assert names(predictions) == ["predictions-1", "predictions-2", "predictions-3"]
    assert bandwidth.figures[0].title == "Bus bandwidth of all_reduce, fp32, 4 ranks"
    for chapter in (bandwidth, volume, steps, predictions):
        for figure in chapter.figures:
            assert figure.png.startswith(PNG)
            assert len(figure.description) > 60
    assert volume.left_out == [
        "Bytes by link class of native: the backend does not tell what it sends over which link."
    ]
    assert not bandwidth.left_out + steps.left_out + predictions.left_out


def test_what_a_record_does_not_hold_is_left_out_and_told(
    changed_file: Callable[[str, Change], Path],
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["stages"] = []
        for result in document["operations"]:
            result["prediction"] = None
            result["bus_limit_bytes_per_s"] = None

    bandwidth, volume, steps, predictions = chapters_of(
        read_records([("r", changed_file("2x2", change))])
    )
    assert len(bandwidth.figures) == 3
    assert "Limits of bandwidth" in bandwidth.left_out[0]
    for chapter, reason in (
        (volume, "whole steps"),
        (steps, "whole steps"),
        (predictions, "--fit"),
    ):
        assert not chapter.figures
        assert reason in chapter.left_out[0]


def test_a_record_without_results_and_a_single_rank(
    changed_file: Callable[[str, Change], Path],
) -> None:
    def empty(document: dict[str, Any]) -> None:
        document.update(operations=[], stages=[], fits=[])

    def single(document: dict[str, Any]) -> None:
        for result in document["operations"]:
            result.update(ranks=1, bus_factor=0.0)

    chapters = chapters_of(read_records([("r", changed_file("1x4", empty))]))
    assert not any(chapter.figures for chapter in chapters)
    assert all(chapter.left_out for chapter in chapters)
    bandwidth = chapters_of(read_records([("r", changed_file("2x2", single))]))[0]
    assert not bandwidth.figures
    assert "one rank sends nothing" in bandwidth.left_out[0]


def test_algorithms_that_count_differently_have_bars_of_their_own(
    changed_file: Callable[[str, Change], Path], records: list[Record]
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["stages"][0]["volumes"][0]["nominal_elements"] *= 2
        document["stages"][0]["nominal_elements"] *= 2

    changed = chapters_of(read_records([("r", changed_file("2x2", change))]))[1]
    same = chapters_of(records[1:2])[1]
    assert changed.figures[0].png != same.figures[0].png


@pytest.mark.parametrize("name", ["$\\frac{$", "_hidden", "x" * 99, "a\x1bb", "漢字", "$$"])
def test_foreign_names_cannot_break_a_figure(
    name: str, changed_file: Callable[[str, Change], Path]
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["topology"]["name"] = name
        for result in document["operations"] + document["stages"]:
            if result["algorithm"] == "ring":
                result["algorithm"] = name

    chapters = chapters_of(read_records([("r", changed_file("1x4", change))]))
    assert sum(len(chapter.figures) for chapter in chapters) == 7


def test_plain_text_is_no_formula() -> None:
    assert plain("a$b") == r"a\$b"
    assert plain("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert len(plain("x" * 99)) == 40


def test_geometric_mean_error_counts_both_ways() -> None:
    assert geometric_mean_error([]) is None
    assert geometric_mean_error([1.0, 1.0]) == 0
    error = geometric_mean_error([2.0, 0.5])
    assert error is not None
    assert math.isclose(error, 1.0)
