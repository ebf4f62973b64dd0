"""The pages. They need nothing but themselves, and show foreign text as text."""

from __future__ import annotations

from dataclasses import dataclass

import jinja2

from zeroproof_report import units
from zeroproof_report.figures.drawing import Figure
from zeroproof_report.figures.stages import conditions_in_words
from zeroproof_report.record import Record
from zeroproof_report.training.record import Run


@dataclass(frozen=True)
class Chapter:
    """Figures of one kind, and what there was not."""

    title: str
    figures: list[Figure]
    left_out: list[str]


def _loss(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4f}"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("zeroproof_report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        seconds=units.seconds,
        rate=units.rate,
        size=units.size,
        traffic=units.traffic,
        per_cent=units.per_cent,
        signed_per_cent=units.signed_per_cent,
        grouped=units.grouped,
        loss=_loss,
        conditions=conditions_in_words,
    )
    return environment


def bench_page(records: list[Record], chapters: list[Chapter]) -> str:
    return _environment().get_template("bench.html").render(records=records, chapters=chapters)


def training_page(runs: list[Run], chapters: list[Chapter]) -> str:
    return _environment().get_template("training.html").render(runs=runs, chapters=chapters)
