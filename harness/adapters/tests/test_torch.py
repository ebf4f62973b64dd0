"""Models of cases in torch, and what adapters share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hand_made import GROUP, CaseMaker, write_cases
from zeroproof_adapter.cases import Case, read_plan

torch = pytest.importorskip("torch")


def load_case(tmp_path: Path, **changes: Any) -> Case:
    maker = CaseMaker(**changes)
    if "actions" not in changes:
        maker.used["scalar"] = [[1, 0]] * 6
    return next(iter(read_plan(write_cases(tmp_path, maker)))).loaded()


@pytest.mark.parametrize("model", ["dot", "echo"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_gradients_are_the_cases(tmp_path: Path, model: str, precision: str) -> None:
    from zeroproof_adapter.torch_models import DTYPES, CaseModel

    case = load_case(tmp_path, model=model, precision=precision)
    for rank in range(2):
        net = CaseModel(case, rank)
        loss = net(3)
        (loss * 256).backward()
        for name, weight in net.weights():
            assert weight.dtype == DTYPES[precision]
            np.testing.assert_array_equal(weight.detach().float(), case.initial(name))
            expected = case.local_gradient(3, rank, name)
            if name == "scalar" and rank == 1:
                assert weight.grad is None  # it leaves the parameter out
            else:
                assert weight.grad is not None
                np.testing.assert_array_equal(weight.grad.float(), 256 * expected)


def test_echoes(tmp_path: Path) -> None:
    from zeroproof_adapter.torch_models import CaseModel

    case = load_case(tmp_path, model="echo")
    net = CaseModel(case, 1)
    net.action = 4
    loss = net(0)
    forward = [("a.weight", 0), ("tied", 0), ("tied", 1), ("scalar", 1)]
    assert [(e.parameter, e.unit) for e in net.echoes] == forward
    with torch.no_grad():
        net.weight("tied").data.fill_(7)  # backward looks at the weight as it is then
    loss.backward()
    backward = net.echoes[4:]
    assert sorted((e.parameter, e.unit) for e in backward) == sorted(forward[:3])
    assert all(e.backward and e.action == 4 for e in backward)
    (late,) = (e for e in backward if (e.parameter, e.unit) == ("tied", 1))
    np.testing.assert_array_equal(np.frombuffer(late.weights.data, np.float32), 7)
    net.echoes.clear()
    with torch.no_grad():
        net(None)
    assert [(e.parameter, e.backward) for e in net.echoes] == [(n, False) for n, _ in forward]


def test_parameters_come_in_the_order_of_registration(tmp_path: Path) -> None:
    from zeroproof_adapter.torch_models import CaseModel

    case = load_case(tmp_path, units=[["scalar"], ["tied"]])  # a.weight is in no unit
    net = CaseModel(case, 0)
    assert [tuple(p.shape) for p in net.parameters()] == [(5,), (3, 2), ()]
    assert [unit.names for unit in net.units()] == [("scalar",), ("tied",)]
    assert [name for name, _ in net.weights()] == ["a.weight", "tied", "scalar"]
    net(0).backward()
    assert net.weight("a.weight").grad is None


def test_optimizer_groups(tmp_path: Path) -> None:
    from zeroproof_adapter.torch_models import CaseModel
    from zeroproof_adapter.torch_tools import adam

    groups = [GROUP, {**GROUP, "decay": "l2", "weight_decay": 0.5}, GROUP]
    late = {"index": 0, "action": "add_group", "group": 2}
    case = load_case(tmp_path, groups=groups, actions=[late])
    net = CaseModel(case, 0)
    assert type(adam(case, net.weights())) is torch.optim.Adam
    assert case.late_groups == {2}
    optimizer = adam(case, ((n, w) for n, w in net.weights() if n != "tied"))
    assert [len(g["params"]) for g in optimizer.param_groups] == [2, 0, 0]
    assert [g["decoupled_weight_decay"] for g in optimizer.param_groups] == [True, False, True]
    assert optimizer.param_groups[1]["weight_decay"] == 0.5


def test_live_bytes() -> None:
    from zeroproof_adapter.torch_tools import live_bytes

    bucket, other = torch.zeros(8), torch.zeros(3, dtype=torch.bfloat16)
    sizes = live_bytes({
        "parameter": [bucket[2:4], bucket[4:], None],
        "gradient": [bucket, other, torch.zeros(0)],
        "master": [],
    })  # fmt: skip
    assert sizes == {"parameter": 32, "gradient": 6, "master": 0}
