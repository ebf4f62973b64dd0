"""The schemas in docs/ hold for what the program writes. ZEROPROOF_PROGRAM is the program."""

from __future__ import annotations

import copy
import json
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")

DOCS = Path(__file__).parents[3] / "docs"

FAMILY = {
    "family": "schemas",
    "purpose": "Every kind of action that the reference has.",
    "ranks": 2,
    "micro_steps": 2,
    "clip_norm": 0.5,
    "model": "echo",
    "groups": [{"learning_rate": 0.0625}, {"decay": "l2"}],
    "parameters": [
        {"name": "a", "shape": [2, "N+1"], "group": 1},
        {"name": "b/c", "shape": []},
        {"name": "frozen", "shape": [0], "trainable": False},
    ],
    "units": [["a", "b/c"], ["b/c", "frozen"]],
    "program": [
        "window",
        {"action": "scale_weight", "parameter": "a", "factor": 2},
        {"action": "zero_grad", "by": "optimizer"},
        "save",
        "evaluate",
        "load",
        "read",
        "reload",
        {"action": "rate", "group": 1, "learning_rate": 0.25},
        {"action": "micro_step", "unused": [{"parameter": "a", "rank": 1}]},
        "micro_step",
        {"action": "scale_gradient", "parameter": "a", "factor": -0.5},
        {"action": "clip", "norm": 0.25},
        "step",
    ],
    "inject": [
        {"micro_step": 3, "rank": 0, "parameter": "a", "element": 0, "value": "inf"},
    ],
    "sweep": {
        "stage": [0, 2],
        "precision": ["fp32", "fp16"],
        "surroundings": ["plain", "hostile"],
    },
}

# The program as its own subject. It runs twice: what its judge has read may be gone before it is
# copied.
RECORDER = """
    import os, shutil, subprocess, sys, tempfile
    program, kept, ranks, cases, results = sys.argv[1:]
    folder = tempfile.mkdtemp(dir=kept)
    shutil.copytree(cases, folder + "/cases")
    os.mkdir(folder + "/results")
    for written in (folder + "/results", results):
        subprocess.check_call([program, "serve", "reference", cases, written])
"""


def schema(name: str) -> Any:
    return json.loads((DOCS / name).read_text(encoding="utf-8"))


def part_of(document: Any, name: str) -> Any:
    """A definition of a schema as a schema of its own."""
    return {"$ref": f"#/$defs/{name}", "$defs": document["$defs"]}


def documents(folder: Path, pattern: str) -> list[Any]:
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob(pattern))]
    assert found, f"the program has written no {pattern}"
    return found


def is_valid(document: Any, of: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(of).is_valid(document))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = os.environ.get("ZEROPROOF_PROGRAM")
    if not program:
        pytest.skip("ZEROPROOF_PROGRAM does not name the program")
    folder = tmp_path_factory.mktemp("kept")
    family = folder / "family.json"
    family.write_text(json.dumps(FAMILY), encoding="utf-8")
    recorder = folder / "recorder.py"
    recorder.write_text(textwrap.dedent(RECORDER), encoding="utf-8")
    words = [sys.executable, str(recorder), program, str(folder)]
    command = " ".join(shlex.quote(word) for word in words) + " {ranks} {cases} {results}"
    done = subprocess.run(
        [program, "verify", "--run", command, "--cases", str(family)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert list(folder.glob("*/cases/cases.json")), done.stdout + done.stderr
    return folder


def test_schemas_are_schemas() -> None:
    for name in ("cases.schema.json", "evidence.schema.json"):
        jsonschema.Draft202012Validator.check_schema(schema(name))


def test_cases_follow_their_schema(kept: Path) -> None:
    for document in documents(kept, "*/cases/cases.json"):
        jsonschema.Draft202012Validator(schema("cases.schema.json")).validate(document)


def test_evidence_follows_its_schema(kept: Path) -> None:
    of = schema("evidence.schema.json")
    for document in documents(kept, "*/results/*/rank-*.json"):
        assert document["status"] == "completed"
        jsonschema.Draft202012Validator(of).validate(document)
    for document in documents(kept, "*/results/ready-*.json"):
        jsonschema.Draft202012Validator(part_of(of, "ready")).validate(document)


# What stands here is not described by the schemas.
FREE = {"definition", "options"}


def with_one_more_key(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a key could be added: the first of each list is enough."""
    if isinstance(document, dict):
        yield path
        for key, value in document.items():
            if key not in FREE:
                yield from with_one_more_key(value, (*path, key))
    elif isinstance(document, list) and document:
        yield from with_one_more_key(document[0], (*path, 0))


def test_an_unknown_key_is_refused_anywhere(kept: Path) -> None:
    for pattern, name in (
        ("*/cases/cases.json", "cases.schema.json"),
        ("*/results/*/rank-*.json", "evidence.schema.json"),
    ):
        document = documents(kept, pattern)[0]
        for path in with_one_more_key(document):
            wrong = copy.deepcopy(document)
            place = wrong
            for key in path:
                place = place[key]
            place["unknown"] = 1
            assert not is_valid(wrong, schema(name)), path


def test_what_is_observed_is_required(kept: Path) -> None:
    of = schema("evidence.schema.json")
    document = documents(kept, "*/results/*/rank-*.json")[0]
    for key in ("echoes", "collectives", "in_flight", "races", "races_watched", "peak_bytes"):
        less = {k: v for k, v in document.items() if k != key}
        assert not is_valid(less, of), key
        assert is_valid({**less, "observed": []}, of), key
    failed = {k: document[k] for k in ("schema", "index", "id", "rank")}
    assert is_valid({**failed, "status": "failed", "message": "why"}, of)
    assert not is_valid({**failed, "status": "failed"}, of)
    assert not is_valid({**failed, "status": "completed"}, of)
