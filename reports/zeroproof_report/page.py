"""The page. It needs nothing but itself, and shows foreign text as text."""

from __future__ import annotations

from dataclasses import dataclass

import jinja2

from zeroproof_report import units
from zeroproof_report.figures.drawing import Figure
from zeroproof_report.figures.stages import conditions_in_words
from zeroproof_report.record import Record


@dataclass(frozen=True)
class Chapter:
    """Figures of one kind, and what there was not."""

    title: str
    figures: list[Figure]
    left_out: list[str]


def page(records: list[Record], chapters: list[Chapter]) -> str:
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
        conditions=conditions_in_words,
    )
    return environment.get_template("page.html").render(records=records, chapters=chapters)
