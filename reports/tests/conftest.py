from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest

from zeroproof_report.record import Record, read_records
from zeroproof_report.training.record import Run, read_runs

DATA = Path(__file__).parent / "data"
Change = Callable[[dict[str, Any]], None]
ReadRuns = Callable[..., list[Run]]
TRAININGS = ("stage0", "stage1", "stage2", "stage3", "recompute")


def sample(shape: str) -> Path:
    return DATA / f"sample-{shape}.json"


def training(name: str) -> Path:
    return DATA / f"training-{name}.json"


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


@pytest.fixture
def runs() -> list[Run]:
    """The samples of training: stages 0 to 3, and stage 3 with recomputation."""
    return read_runs([(name, training(name)) for name in TRAININGS])


@pytest.fixture
def changed_training(tmp_path: Path) -> Callable[[str, Change], Path]:
    """Writes a sample of training with a change."""

    def write(name: str, change: Change) -> Path:
        document = json.loads(training(name).read_text())
        change(document)
        file = tmp_path / f"changed-{name}.json"
        file.write_text(json.dumps(document))
        return file

    return write


@pytest.fixture
def changed_runs(changed_training: Callable[[str, Change], Path]) -> ReadRuns:
    """Reads samples of training, each with a change."""

    def read(**changes: Change) -> list[Run]:
        return read_runs([(n, changed_training(n, change)) for n, change in changes.items()])

    return read
