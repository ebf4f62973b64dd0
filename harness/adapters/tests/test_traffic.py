"""Canonical records of what an observer has seen."""

from __future__ import annotations

from typing import Any

import pytest

from zeroproof_adapter.evidence import EvidenceError
from zeroproof_adapter.traffic import canonical, default_traffic


def record(op: str, phase: str = "backward", **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "action": 3,
        "phase": phase,
        "op": op,
        "reduction": "sum" if "reduce" in op else "none",
        "type": "fp32",
        "in_elements": 4,
        "out_elements": 8,
        "peer": -1,
        "group": [0, 1],
        "number": 17,
        "awaited": True,
    }
    return {**values, **changes}


@pytest.mark.parametrize(
    ("seen", "traffic"),
    [
        (record("all_reduce"), "gradient"),
        (record("reduce_scatter", "forward"), "gradient"),
        (record("reduce"), "gradient"),
        (record("all_to_all"), "gradient"),
        (record("all_to_all", "forward"), "parameter"),
        (record("all_reduce", type="int32"), "control"),
        (record("all_gather", type="uint8"), "control"),
        (record("broadcast", type="bool"), "control"),
        (record("all_gather", "forward"), "parameter"),
        (record("broadcast"), "parameter"),
        (record("all_reduce", "step"), "control"),
        (record("all_gather", "step"), "parameter"),
        (record("broadcast", "step"), "parameter"),
        (record("broadcast", "initialise"), "parameter"),
        (record("all_reduce", "zero_grad"), "gradient"),
    ],
)
def test_traffic(seen: dict[str, Any], traffic: str) -> None:
    assert default_traffic(seen) == traffic


def test_sequences_count_within_group_and_traffic() -> None:
    seen = canonical([
        record("all_reduce"),
        record("all_gather"),
        record("all_reduce", group=[1]),
        record("reduce_scatter"),
        record("all_gather", type="bool"),
    ])  # fmt: skip
    assert [(c.traffic, c.group, c.sequence) for c in seen] == [
        ("gradient", (0, 1), 0),
        ("parameter", (0, 1), 0),
        ("gradient", (1,), 0),
        ("gradient", (0, 1), 1),
        ("control", (0, 1), 0),
    ]
    assert seen[4].type == "int8" and (seen[4].in_elements, seen[4].out_elements) == (4, 8)


def test_a_trainer_may_know_better() -> None:
    (seen,) = canonical([record("all_reduce", "step")], lambda _: "gradient")
    assert seen.traffic == "gradient"


def test_what_has_no_word() -> None:
    assert canonical([record("gather", "save")]) == []
    with pytest.raises(EvidenceError, match="a gather with reduction none in backward"):
        canonical([record("gather")])
    (seen,) = canonical([record("all_reduce", reduction="bitwise_or", type="uint8")])
    assert seen.reduction == "max"
