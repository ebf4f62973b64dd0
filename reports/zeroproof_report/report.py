"""From records to files."""

from __future__ import annotations

import json
import os
from pathlib import Path

from zeroproof_report.figures import bandwidth, predictions, step_times, volumes
from zeroproof_report.figures.drawing import Drawn, Looks
from zeroproof_report.page import Chapter, bench_page, training_page
from zeroproof_report.record import Record, read_records
from zeroproof_report.training import at_rest, losses, peaks, timelines
from zeroproof_report.training.record import FORMAT, Run, read_runs


def chapters_of(records: list[Record]) -> list[Chapter]:
    """All figures of records of bench, by what they tell."""
    looks = Looks(
        [r.algorithm for record in records for r in record.operations]
        + [s.algorithm for record in records for s in record.stages]
    )
    kinds: list[tuple[str, Drawn]] = [
        ("Bandwidth of operations", bandwidth.draw(records, looks)),
        ("What a step sends", volumes.draw(records)),
        ("Time of a step", step_times.draw(records)),
        ("Predicted and measured", predictions.draw(records, looks)),
    ]
    return [Chapter(title, drawn.figures, drawn.left_out) for title, drawn in kinds]


def chapters_of_training(runs: list[Run]) -> list[Chapter]:
    """All figures of training records, by what they tell."""
    kinds: list[tuple[str, Drawn]] = [
        ("Loss", losses.draw(runs)),
        ("Bytes at rest", at_rest.draw(runs)),
        ("Peaks", peaks.draw(runs)),
        ("Bytes over a step", timelines.draw(runs)),
    ]
    return [Chapter(title, drawn.figures, drawn.left_out) for title, drawn in kinds]


def _is_of_training(path: Path) -> bool:
    return bool(json.loads(path.read_text(encoding="utf-8"))["format"] == FORMAT)


def _drawn(files: list[tuple[str, Path]]) -> tuple[list[Chapter], str]:
    """The figures and the page."""
    if _is_of_training(files[0][1]):
        runs = read_runs(files)
        chapters = chapters_of_training(runs)
        return chapters, training_page(runs, chapters)
    records = read_records(files)
    chapters = chapters_of(records)
    return chapters, bench_page(records, chapters)


def _write_whole(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_report(path: Path, files: list[tuple[str, Path]]) -> int:
    """Writes the page and, into a folder beside it, its figures; returns how many there are.

    `files` are records, all of bench or all of training, each with the name that readers know it
    by.
    """
    chapters, text = _drawn(files)
    figures = [figure for chapter in chapters for figure in chapter.figures]
    folder = path.with_name(f"{path.stem}-figures")
    folder.mkdir(exist_ok=True)
    for figure in figures:
        _write_whole(folder / f"{figure.name}.png", figure.png)
    _write_whole(path, text.encode("utf-8", "replace"))
    return len(figures)
