"""Faults planted in adapters, each caught by the clause that names it.

`faults.json` has them as `suites/conformance/mutants` has those of the reference. A row changes one
place in a copy of this package and runs a few cases: the clause in `killed_by` has to fail, or,
where the adapter reports what is no evidence, the program has to end with the row's exit code and
to say what matches `says`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.judging import ADAPTERS, Judged, copy_of_package, launching, needs_program, verify

pytestmark = needs_program

Row = dict[str, Any]

FAULTS: list[Row] = json.loads((Path(__file__).parent / "faults.json").read_text())["faults"]

# What the rows' cases need. Where a library deviates in its traffic is no matter here.
TORCH: Row = {
    "precisions": ["fp32"],
    "actions": ["micro_step", "step", "evaluate", "save", "load"],
    "clip_epsilon": 1e-6,
    "lazy_states": True,
    "skips_non_finite": False,
}
DECLARATIONS: dict[str, Row] = {
    "template": {
        "version": "unversioned",
        "stages": [1],
        "precisions": ["fp32"],
        "actions": [
            "micro_step", "step", "zero_grad", "evaluate", "read", "rate", "save", "load", "reload",
        ],
    },
    "torch-ddp": {"stages": [0], "without_gradient": "skip", **TORCH},
    "torch-zero1": {"stages": [1], "without_gradient": "skip", **TORCH},
    "fsdp2": {"stages": [2, 3], **TORCH},
}  # fmt: skip


def subject_of(row: Row) -> str:
    """The template, also where the package itself is at fault."""
    if "subject" in row:  # of a file that several share
        return str(row["subject"])
    path = Path(row["file"])
    return path.stem.replace("_", "-") if path.parent.name == "subjects" else "template"


def judge(subject: str, folder: Path, package: Path, rows: list[Row]) -> Judged:
    file, options = subject, []
    if subject == "template":
        file = str(package / "template_adapter.py")
    else:
        pytest.importorskip("torch")
        # Those clauses alone, whatever else the library breaks.
        options = [f"--clause={row['killed_by']}" for row in rows]
    declaration = folder / "declaration.json"
    declaration.write_text(json.dumps({"subject": subject, **DECLARATIONS[subject]}))
    cases = sorted({row["cases"] for row in rows})
    return verify(
        folder, launching(file), cases, *options, declaration=declaration, package=package
    )


@pytest.mark.parametrize("subject", list(DECLARATIONS))
def test_without_a_fault(tmp_path: Path, subject: str) -> None:
    rows = [row for row in FAULTS if subject_of(row) == subject]
    judged = judge(subject, tmp_path, copy_of_package(tmp_path / "package"), rows)
    assert judged.exit_code in (0, 3), judged.text
    assert judged.failed() == set()
    assert {case["status"] for case in judged.cases} == {"completed"}
    # The template records no collectives, and one row claims them.
    killers = {row["killed_by"] for row in rows if "killed_by" in row} - {"TRAFFIC.GRADIENT"}
    assert killers - judged.passed() == set()


@pytest.mark.parametrize("row", FAULTS, ids=[row["name"] for row in FAULTS])
def test_fault(tmp_path: Path, row: Row) -> None:
    package = copy_of_package(tmp_path / "package")
    path = package / row["file"]
    source = path.read_text()
    assert source.count(row["find"]) == 1, "the row has to find exactly one place"
    path.write_text(source.replace(row["find"], row["replace"]))
    judged = judge(subject_of(row), tmp_path, package, [row])
    assert judged.cases, judged.text
    assert judged.exit_code == row.get("exit", 1), judged.text
    if "says" in row:
        assert re.search(row["says"], judged.text), judged.text
    if "killed_by" in row:
        assert row["killed_by"] in judged.failed(), judged.failed() or judged.text
    if judged.exit_code == 4:
        assert judged.passed() == set()


def test_the_catalogue() -> None:
    names = [row["name"] for row in FAULTS]
    assert len(set(names)) == len(names) >= 25
    for row in FAULTS:
        assert ("killed_by" in row or "says" in row) and row["why"].endswith("."), row["name"]
        assert (ADAPTERS / row["file"]).is_file()
