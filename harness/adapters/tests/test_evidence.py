"""Writing evidence: every bit arrives, and what the protocol has no place for is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.hand_made import CaseMaker, read_evidence, write_cases
from zeroproof_adapter.cases import Case, read_plan
from zeroproof_adapter.evidence import (
    Collective,
    Echo,
    Evidence,
    EvidenceError,
    Race,
    Records,
    Slice,
    State,
    StepReport,
    bits_of,
    write_ready,
)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return next(iter(read_plan(write_cases(tmp_path / "cases", CaseMaker()))))


def slice_of(**changes: Any) -> Slice:
    values: dict[str, Any] = {
        "parameter": "a.weight",
        "begin": 2,
        "master": np.array([1, -0.0, np.nan], np.float32),
        "momentum": np.ones(3, np.float32),
        "variance": np.ones(3, np.float32),
    }
    return Slice(**{**values, **changes})


def with_gradient(**changes: Any) -> Slice:
    return slice_of(gradient=np.ones(3, np.float32), **changes)


def weights() -> dict[str, Any]:
    return {
        "a.weight": np.arange(5, dtype=np.float16),
        "tied": np.arange(6, dtype=np.float64),
        "scalar": np.float32(3),
    }


def test_everything_arrives(case: Case, tmp_path: Path) -> None:
    evidence = Evidence(case, 1, tmp_path / "0000")
    evidence.observed = frozenset({"weights", "gradient", "master"})
    evidence.add_snapshot(-1, State([slice_of()], weights(), loss_scale=256))
    gradient = np.array([4, 5, 6], np.float32)
    evidence.add_snapshot(
        2,
        State([slice_of(gradient=gradient)], weights(), 1, 2, live_bytes={"master": 12}),
        StepReport(False, float("inf"), float("nan")),
    )
    evidence.records = Records(
        echoes=[Echo(0, True, 1, "tied", np.ones((3, 2), np.float32))],
        collectives=[
            Collective(
                0, "backward", "gradient", "all_reduce", "sum", "fp32", 8, 8, -1, (0, 1), 0, True
            )
        ],
        races=[Race("never waited for", "all_reduce", 3, 0)],
        races_watched=True,
        peak_bytes={"forward": 100},
    )
    evidence.write("completed")

    document, tensors = read_evidence(tmp_path, 1)
    assert document["schema"] == "zeroproof.evidence/1"
    assert (document["index"], document["id"], document["rank"]) == (0, "hand/made", 1)
    first, second = document["snapshots"]
    assert first == {
        "action": -1,
        "owned": [{"parameter": "a.weight", "begin": 2, "elements": 3}],
        "steps_taken": 0,
        "steps_skipped": 0,
        "loss_scale": 256,
        "live_bytes": {},
    }
    assert second["norm"] == "inf" and second["clip_coefficient"] == "nan"
    assert second["skipped"] is False and second["live_bytes"] == {"master": 12}
    assert (second["steps_taken"], second["steps_skipped"]) == (1, 2)
    master = slice_of().master
    assert tensors["0/owned/0/master"].tobytes() == master.tobytes()
    assert "0/owned/0/gradient" not in tensors
    np.testing.assert_array_equal(tensors["1/owned/0/gradient"], gradient)
    assert tensors["0/weights/a.weight"].dtype == np.float16
    assert tensors["0/weights/tied"].dtype == np.float64
    assert tensors["0/weights/tied"].shape == (3, 2) and tensors["0/weights/scalar"].shape == ()
    assert document["echoes"] == [{"action": 0, "backward": True, "unit": 1, "parameter": "tied"}]
    assert tensors["echo/0"].shape == (3, 2)
    assert document["collectives"][0]["group"] == [0, 1]
    assert document["races"][0]["kind"] == "never waited for" and document["races_watched"]
    assert document["peak_bytes"] == {"forward": 100}
    assert sorted(p.name for p in (tmp_path / "0000").iterdir()) == [
        "rank-1.json",
        "rank-1.safetensors",
    ]


def test_a_snapshot_is_a_copy(case: Case, tmp_path: Path) -> None:
    evidence = Evidence(case, 0, tmp_path / "0000")
    piece = slice_of(master=np.zeros(3, np.float32))
    evidence.add_snapshot(-1, State([piece], weights()))
    piece.master[:] = 1
    evidence.write("completed")
    assert not read_evidence(tmp_path, 0)[1]["0/owned/0/master"].any()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State([slice_of(momentum=np.ones(2, np.float32))], weights()), "momentum of a.weight at"),
        (State([slice_of(master=np.ones(3, np.int64))], weights()), "type int64"),
        (State([slice_of(parameter="x")], weights()), "'x', which is no parameter"),
        (State([with_gradient()], {"a.weight": np.ones(5)}), "weights of tied are missing"),
        (State([with_gradient()], {**weights(), "tied": np.ones(5)}), "5 elements, not 6"),
        (State([slice_of(momentum=None)], weights()), "without its momentum"),
        (State([slice_of()], weights()), "without its gradient"),
    ],
)
def test_what_is_wrong_is_named(case: Case, tmp_path: Path, state: State, message: str) -> None:
    evidence = Evidence(case, 0, tmp_path)
    evidence.observed = frozenset({"weights", "gradient", "momentum", "norm"})
    with pytest.raises(EvidenceError, match=message):
        evidence.add_snapshot(2, state, StepReport(norm=1.0))


def test_a_step_reports_what_it_promises(case: Case, tmp_path: Path) -> None:
    evidence = Evidence(case, 0, tmp_path)
    evidence.observed = frozenset({"norm"})
    with pytest.raises(EvidenceError, match="does not report norm"):
        evidence.add_snapshot(2, State([], weights()), StepReport())


def test_a_skipped_step_needs_no_gradient(case: Case, tmp_path: Path) -> None:
    evidence = Evidence(case, 0, tmp_path)
    evidence.observed = frozenset({"gradient"})
    evidence.add_snapshot(2, State([slice_of()], weights()), StepReport(skipped=True))


def test_torch_tensors_keep_their_bits() -> None:
    torch = pytest.importorskip("torch")
    values = torch.tensor([1.0, float("nan"), -0.0, 3e38]).to(torch.bfloat16)
    assert bits_of(values) == ("BF16", (4,), values.view(torch.int16).numpy().tobytes())
    transposed = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    assert bits_of(transposed) == bits_of(np.ascontiguousarray(transposed.detach().numpy()))
    assert bits_of(torch.zeros(0, 3, dtype=torch.float64)) == ("F64", (0, 3), b"")


def test_bf16_is_readable(case: Case, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file as load_torch_file

    evidence = Evidence(case, 0, tmp_path)
    brain = torch.tensor([1.0, -2.5, 3.0], dtype=torch.bfloat16)
    evidence.add_snapshot(-1, State([slice_of(master=brain)], weights()))
    evidence.write("completed")
    tensors = load_torch_file(tmp_path / "rank-0.safetensors")
    assert torch.equal(tensors["0/owned/0/master"], brain)


def test_other_byte_orders() -> None:
    assert bits_of(np.array([1, 2], ">f4")) == bits_of(np.array([1, 2], "<f4"))


def test_a_failure_is_evidence_too(case: Case, tmp_path: Path) -> None:
    Evidence(case, 0, tmp_path / "0000").write("failed", "it's \udcff broken")
    document = json.loads((tmp_path / "0000/rank-0.json").read_text())
    assert document["status"] == "failed" and document["snapshots"] == []
    assert load_file(tmp_path / "0000/rank-0.safetensors") == {}


def test_ready(tmp_path: Path) -> None:
    write_ready(tmp_path / "results", 3, "mine", "1.0")
    assert json.loads((tmp_path / "results/ready-3.json").read_text()) == {
        "schema": "zeroproof.evidence/1",
        "subject": "mine",
        "version": "1.0",
    }
