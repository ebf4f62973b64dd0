from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest

from zeroproof_report.record import Record, read_records

DATA = Path(__file__).parent / "data"
Change = Callable[[dict[str, Any]], None]
ReadChanged = Callable[..., list[Record]]


def sample(shape: str) -> Path:
    return DATA / f"sample-{shape}.json"


@pytest.fixture
def records() -> list[Record]:
    """The samples: 1x4, 2x2 and 4x2."""
    return read_records([(shape, sample(shape)) for shape in ("1x4", "2x2", "4x2")])


@pytest.fixture
def changed_file(tmp_path: Path) -> Callable[[str, Change], Path]:
    """Writes a sample with a change."""

    def write(shape: str, change: Change) -> Path:
        document = json.loads(sample(shape).read_text())
        change(document)
        file = tmp_path / f"changed-{shape}.json"
        file.write_text(json.dumps(document))
        return file

    return write
