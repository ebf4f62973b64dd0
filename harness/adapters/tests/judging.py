"""Runs `zeroproof verify` on adapters of the tests' own. $ZEROPROOF_PROGRAM names the program."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ADAPTERS = Path(__file__).parent.parent

PROGRAM = os.environ.get("ZEROPROOF_PROGRAM", "")

needs_program = pytest.mark.skipif(
    not PROGRAM, reason="ZEROPROOF_PROGRAM does not name the program, build/release/zeroproof"
)


@dataclass(frozen=True)
class Judged:
    """What a run of the program left behind."""

    exit_code: int  # negative: ended by that signal
    text: str  # what it printed, in one line
    record: dict[str, Any]

    @property
    def cases(self) -> list[dict[str, Any]]:
        return list(self.record["cases"])

    def verdicts(self, clause: str) -> list[str]:
        """One for each case that the clause judges, in the order of the cases."""
        return [v for case in self.cases if (v := self.verdict(case, clause))]

    def failed(self) -> set[str]:
        return {
            c["clause"] for case in self.cases for c in case["clauses"] if c["verdict"] == "fail"
        }

    def passed(self) -> set[str]:
        return {clause for case in self.cases for clause in case["passed"]}

    @staticmethod
    def verdict(case: dict[str, Any], clause: str) -> str:
        others = {c["clause"]: str(c["verdict"]) for c in case["clauses"]}
        return "pass" if clause in case["passed"] else others.get(clause, "")


def copy_of_package(folder: Path) -> Path:
    """The package and the template, to be changed and imported from there."""
    shutil.copytree(
        ADAPTERS / "zeroproof_adapter",
        folder / "zeroproof_adapter",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ADAPTERS / "template_adapter.py", folder)
    return folder


def launching(subject: str) -> str:
    """The command that launches a subject, a name or a file."""
    return (
        f"{shlex.quote(sys.executable)} -m zeroproof_adapter.launch {shlex.quote(subject)}"
        " --ranks {ranks} {cases} {results}"
    )


def verify(
    folder: Path,
    command: str,
    cases: Iterable[str],
    *options: str,
    declaration: Path | None = None,
    package: Path = ADAPTERS,
    seconds: float = 100,
) -> Judged:
    """Judges what `command` runs; `cases` are patterns of ids. The record goes into `folder`."""
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    arguments: list[str] = [PROGRAM, "verify", "--run", command, "--json", str(record), *options]
    for pattern in cases:
        arguments += ["--filter", pattern]
    if declaration is not None:
        arguments += ["--declaration", str(declaration)]
    # In a folder without a package: python -m looks there first.
    done = subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    text = " ".join((done.stdout + done.stderr).split())
    judged = json.loads(record.read_text()) if record.exists() else {"cases": []}
    return Judged(done.returncode, text, judged)
