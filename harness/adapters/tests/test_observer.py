"""The observing backend: exact records, unchanged values, and races that become certain."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

# Untyped, as the tests use what torch does not export.
torch: Any = pytest.importorskip("torch")
dist: Any = pytest.importorskip("torch.distributed")

from zeroproof_adapter import observer  # noqa: E402

N = 3
Body = Callable[[int], Any]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    observer.install()


# ------------------------------------------------------------------------------ ranks


def _rank(body: Body, mode: str, rank: int, store: str, answer: Connection) -> None:
    try:
        torch.set_num_threads(1)
        # The names that newer versions of torch prefer are missing from older ones.
        warnings.simplefilter("ignore", FutureWarning)
        if mode != "gloo":
            observer.install()
        dist.init_process_group(
            "gloo" if mode == "gloo" else observer.BACKEND,
            store=dist.FileStore(store, N),
            rank=rank,
            world_size=N,
        )
        if mode != "gloo":
            observer.set_hostile(7 if mode == "hostile" else None)
        result = body(rank)
        dist.barrier()
        dist.destroy_process_group()
        answer.send((result, None))
    except BaseException:
        answer.send((None, traceback.format_exc()))


def on_ranks(body: Body, mode: str, folder: Path) -> list[Any]:
    """What `body` returns on each rank, in a fresh process each."""
    # Not forked from here, where another test may have left threads.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed.fsdp"])
    store = str(folder / f"store-{mode}-{time.monotonic_ns()}")
    pipes = [context.Pipe(duplex=False) for _ in range(N)]
    ranks = [
        context.Process(target=_rank, args=(body, mode, r, store, pipes[r][1]), daemon=True)
        for r in range(N)
    ]
    for process in ranks:
        process.start()
    try:
        results = []
        deadline = time.monotonic() + 120
        for rank, (reader, _) in enumerate(pipes):
            assert reader.poll(max(0.0, deadline - time.monotonic())), f"rank {rank} hangs"
            result, error = reader.recv()
            assert error is None, f"rank {rank}: {error}"
            results.append(result)
        return results
    finally:
        for process in ranks:
            process.join(5)
            if process.is_alive():
                process.kill()


def _bits(tensors: list[Any]) -> list[Any]:
    return [t.detach().contiguous().reshape(-1).view(torch.uint8).tolist() for t in tensors]


def _filled(rank: int, *shape: int, dtype: Any = torch.float32) -> Any:
    count = int(torch.Size(shape).numel())
    return (torch.arange(count) * (rank + 2) % 7 - 2 * rank).to(dtype).reshape(shape)


# ------------------------------------------------------------------------------ operations
# Each returns the tensors whose values are defined afterwards.


def _all_reduce(rank: int) -> list[Any]:
    x = _filled(rank, 5)
    dist.all_reduce(x)
    return [x]


def _all_reduce_max(rank: int) -> list[Any]:
    x = _filled(rank, 2, 3, dtype=torch.int64)
    dist.all_reduce(x, dist.ReduceOp.MAX)
    return [x]


def _all_reduce_min(rank: int) -> list[Any]:
    x = _filled(rank, 1, dtype=torch.int8)
    dist.all_reduce(x, dist.ReduceOp.MIN)
    return [x]


def _all_reduce_mean(rank: int) -> list[Any]:
    x = _filled(rank, 4)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    return [x]


def _all_reduce_product(rank: int) -> list[Any]:
    x = _filled(rank, 2, dtype=torch.int32)
    dist.all_reduce(x, dist.ReduceOp.PRODUCT)
    return [x]


def _all_reduce_transposed(rank: int) -> list[Any]:
    x = _filled(rank, 2, 3).t()
    dist.all_reduce(x)
    return [x]


def _all_reduce_coalesced(rank: int) -> list[Any]:
    xs = [_filled(rank, 3), _filled(rank, 2)]
    with dist._coalescing_manager():
        for x in xs:
            dist.all_reduce(x)
    return xs


def _broadcast(rank: int) -> list[Any]:
    x = _filled(rank, 4, dtype=torch.float64)
    dist.broadcast(x, 1)
    return [x]


def _reduce(rank: int) -> list[Any]:
    x = _filled(rank, 4, dtype=torch.bfloat16)
    dist.reduce(x, 2)
    return [x] if rank == 2 else []


def _all_gather(rank: int) -> list[Any]:
    outputs = [torch.zeros(2) for _ in range(N)]
    dist.all_gather(outputs, _filled(rank, 2))
    return outputs


def _all_gather_into_tensor(rank: int) -> list[Any]:
    output = torch.zeros(N * 2, dtype=torch.float16)
    dist.all_gather_into_tensor(output, _filled(rank, 2, dtype=torch.float16))
    return [output]


def _all_gather_in_place(rank: int) -> list[Any]:
    output = torch.zeros(N * 2)
    part = output[2 * rank : 2 * rank + 2]
    part.copy_(_filled(rank, 2))
    dist.all_gather_into_tensor(output, part)
    return [output]


def _all_gather_coalesced(rank: int) -> list[Any]:
    outputs = [torch.zeros(N * 2), torch.zeros(N)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.all_gather_into_tensor(output, _filled(rank, output.numel() // N))
    return outputs


def _all_gather_lists_coalesced(rank: int) -> list[Any]:
    outputs = [[torch.zeros(2), torch.zeros(1)] for _ in range(N)]
    dist.all_gather_coalesced(outputs, [_filled(rank, 2), _filled(rank, 1)])
    return [tensor for of_rank in outputs for tensor in of_rank]


def _reduce_scatter(rank: int) -> list[Any]:
    output = torch.zeros(2)
    dist.reduce_scatter(output, [_filled(rank + i, 2) for i in range(N)])
    return [output]


def _reduce_scatter_tensor(rank: int) -> list[Any]:
    output = torch.zeros(2)
    dist.reduce_scatter_tensor(output, _filled(rank, N * 2), dist.ReduceOp.AVG)
    return [output]


def _reduce_scatter_coalesced(rank: int) -> list[Any]:
    outputs = [torch.zeros(2), torch.zeros(1)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_tensor(output, _filled(rank, N * output.numel()))
    return outputs


def _all_to_all(rank: int) -> list[Any]:
    outputs = [torch.zeros(2) for _ in range(N)]
    dist.all_to_all(outputs, [_filled(rank + i, 2) for i in range(N)])
    return outputs


def _all_to_all_single(rank: int) -> list[Any]:
    # Rank r sends i + 1 elements to rank i.
    output = torch.zeros(N * (rank + 1))
    dist.all_to_all_single(output, _filled(rank, 6), [rank + 1] * N, [1, 2, 3])
    return [output]


def _gather(rank: int) -> list[Any]:
    outputs = [torch.zeros(2) for _ in range(N)] if rank == 1 else None
    dist.gather(_filled(rank, 2), outputs, dst=1)
    return outputs or []


def _scatter(rank: int) -> list[Any]:
    output = torch.zeros(2)
    dist.scatter(output, [_filled(i, 2) for i in range(N)] if rank == 0 else None, src=0)
    return [output]


def _ring(rank: int) -> list[Any]:
    output = torch.zeros(3)
    sent = dist.isend(_filled(rank, 3), (rank + 1) % N)
    received = dist.irecv(output, (rank - 1) % N)
    sent.wait()
    received.wait()
    return [output]


def _from_anybody(rank: int) -> list[Any]:
    output = torch.zeros(3)
    if rank == 0:
        assert dist.recv(output) == 1
    if rank == 1:
        dist.send(_filled(rank, 3), 0)
    return [output]


def _barrier(rank: int) -> list[Any]:
    dist.barrier()
    return []


def _objects(rank: int) -> list[Any]:
    gathered: list[Any] = [None] * N
    dist.all_gather_object(gathered, "abc"[rank])
    return [torch.tensor([ord(text) for text in gathered])]


def _empty(rank: int) -> list[Any]:
    output = torch.zeros(0)
    dist.all_gather_into_tensor(output, torch.zeros(0))
    return [output]


# op, reduction, type, in, out, peer
Row = tuple[str, str, str, int, int, int]
EXPECTED: dict[Body, Callable[[int], list[Row]]] = {
    _all_reduce: lambda r: [("all_reduce", "sum", "fp32", 5, 5, -1)],
    _all_reduce_max: lambda r: [("all_reduce", "max", "int64", 6, 6, -1)],
    _all_reduce_min: lambda r: [("all_reduce", "min", "int8", 1, 1, -1)],
    _all_reduce_mean: lambda r: [("all_reduce", "mean", "fp32", 4, 4, -1)],
    _all_reduce_product: lambda r: [("all_reduce", "product", "int32", 2, 2, -1)],
    _all_reduce_transposed: lambda r: [("all_reduce", "sum", "fp32", 6, 6, -1)],
    _all_reduce_coalesced: lambda r: [
        ("all_reduce", "sum", "fp32", 3, 3, -1),
        ("all_reduce", "sum", "fp32", 2, 2, -1),
    ],
    _broadcast: lambda r: [("broadcast", "none", "fp64", 4, 4, 1)],
    _reduce: lambda r: [("reduce", "sum", "bf16", 4, 4 if r == 2 else 0, 2)],
    _all_gather: lambda r: [("all_gather", "none", "fp32", 2, 6, -1)],
    _all_gather_into_tensor: lambda r: [("all_gather", "none", "fp16", 2, 6, -1)],
    _all_gather_in_place: lambda r: [("all_gather", "none", "fp32", 2, 6, -1)],
    _all_gather_coalesced: lambda r: [
        ("all_gather", "none", "fp32", 2, 6, -1),
        ("all_gather", "none", "fp32", 1, 3, -1),
    ],
    _all_gather_lists_coalesced: lambda r: [
        ("all_gather", "none", "fp32", 2, 6, -1),
        ("all_gather", "none", "fp32", 1, 3, -1),
    ],
    _reduce_scatter: lambda r: [("reduce_scatter", "sum", "fp32", 6, 2, -1)],
    _reduce_scatter_tensor: lambda r: [("reduce_scatter", "mean", "fp32", 6, 2, -1)],
    _reduce_scatter_coalesced: lambda r: [
        ("reduce_scatter", "sum", "fp32", 6, 2, -1),
        ("reduce_scatter", "sum", "fp32", 3, 1, -1),
    ],
    _all_to_all: lambda r: [("all_to_all", "none", "fp32", 6, 6, -1)],
    _all_to_all_single: lambda r: [("all_to_all", "none", "fp32", 6, N * (r + 1), -1)],
    _gather: lambda r: [("gather", "none", "fp32", 2, 6 if r == 1 else 0, 1)],
    _scatter: lambda r: [("scatter", "none", "fp32", 6 if r == 0 else 0, 2, 0)],
    _ring: lambda r: [
        ("send", "none", "fp32", 3, 0, (r + 1) % N),
        ("receive", "none", "fp32", 0, 3, (r - 1) % N),
    ],
    _from_anybody: lambda r: [
        [("receive", "none", "fp32", 0, 3, 1)],
        [("send", "none", "fp32", 3, 0, 0)],
        [],
    ][r],
    _barrier: lambda r: [],
    _empty: lambda r: [("all_gather", "none", "fp32", 0, 0, -1)],
}


def _rows(records: list[observer.Record]) -> list[Row]:
    return [
        (r["op"], r["reduction"], r["type"], r["in_elements"], r["out_elements"], r["peer"])
        for r in records
    ]


def _operations(rank: int) -> list[Any]:
    observing = dist.get_backend() == observer.BACKEND
    results = []
    for operation in [*EXPECTED, _objects]:
        values = _bits(operation(rank))
        records = observer.take_records() if observing else []
        races = observer.take_races() if observing else []
        results.append((operation.__name__, values, records, races))
    return results


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("operations")
    return {mode: on_ranks(_operations, mode, folder) for mode in ("gloo", "metered", "hostile")}


@pytest.mark.parametrize("mode", ["metered", "hostile"])
def test_each_operation_is_recorded_exactly(operations: dict[str, list[Any]], mode: str) -> None:
    for rank in range(N):
        number = 0
        for operation, (name, _, records, _) in zip(EXPECTED, operations[mode][rank]):
            assert _rows(records) == EXPECTED[operation](rank), f"rank {rank}, {name}"
            for record in records:
                assert record["group"] == list(range(N))
                assert record["number"] == number
                assert record["awaited"]
                assert (record["action"], record["phase"]) == (-1, "initialise")
                number += 1


@pytest.mark.parametrize("mode", ["metered", "hostile"])
def test_values_are_those_of_gloo_and_nothing_races(
    operations: dict[str, list[Any]], mode: str
) -> None:
    for expected, seen in zip(operations["gloo"], operations[mode]):
        for (name, values, _, _), (_, own_values, _, races) in zip(expected, seen):
            assert own_values == values, name
            assert races == [], name


def test_control_traffic_keeps_the_types_that_the_protocol_lacks(
    operations: dict[str, list[Any]],
) -> None:
    _, _, records, _ = operations["metered"][0][-1]
    assert {record["type"] for record in records} == {"int64", "uint8"}


# ------------------------------------------------------------------------------ groups and labels


def _groups(rank: int) -> Any:
    pair = dist.new_group([2, 0])
    mesh = dist.device_mesh.init_device_mesh("cpu", (N, 1), mesh_dim_names=("a", "b"))
    observer.take_records()
    if rank != 1:
        x = torch.ones(2)
        dist.broadcast(x, 2, group=pair)
        dist.all_reduce(x, group=pair)
    dist.all_reduce(torch.ones(1), group=mesh.get_group("b"))
    return [(r["op"], r["group"], r["peer"]) for r in observer.take_records()]


def test_ranks_are_those_of_the_world(tmp_path: Path) -> None:
    for rank, records in enumerate(on_ranks(_groups, "metered", tmp_path)):
        of_pair = [] if rank == 1 else records[:2]
        if of_pair:
            group = of_pair[0][1]
            assert sorted(group) == [0, 2]
            assert of_pair == [("broadcast", group, 2), ("all_reduce", group, -1)]
        assert records[-1] == ("all_reduce", [rank], -1)


def _labels(rank: int) -> Any:
    x = torch.ones(2, requires_grad=True)
    observer.enter(4, "forward")
    dist.all_reduce(torch.ones(1))
    x.register_hook(dist.all_reduce)
    observer.enter(5, "backward")
    x.sum().backward()
    return [(r["action"], r["phase"], r["in_elements"]) for r in observer.take_records()]


def test_records_carry_the_action_and_phase_of_their_start(tmp_path: Path) -> None:
    for records in on_ranks(_labels, "metered", tmp_path):
        assert records == [(4, "forward", 1), (5, "backward", 2)]


def _flying(rank: int) -> Any:
    x = torch.ones(1)
    counts = [observer.in_flight()]
    first = dist.all_reduce(x, async_op=True)
    second = dist.all_gather_into_tensor(torch.zeros(N), torch.ones(1), async_op=True)
    counts.append(observer.in_flight())
    first.wait()
    counts.append(observer.in_flight())
    second.get_future().wait()
    counts.append(observer.in_flight())
    dist.all_reduce(x, async_op=True)
    counts.append(observer.in_flight())
    return counts, [r["awaited"] for r in observer.take_records()], observer.in_flight()


@pytest.mark.parametrize("mode", ["metered", "hostile"])
def test_operations_are_in_flight_until_the_wait(tmp_path: Path, mode: str) -> None:
    for counts, awaited, after in on_ranks(_flying, mode, tmp_path):
        assert counts == [
            {},
            {"all_reduce": 1, "all_gather": 1},
            {"all_gather": 1},
            {},
            {"all_reduce": 1},
        ]
        assert awaited == [True, True, False]
        assert after == {}


# ------------------------------------------------------------------------------ hostile


def _poison(rank: int) -> Any:
    x = torch.ones(2)
    n = torch.ones(2, dtype=torch.int64)
    works = [dist.all_reduce(x, async_op=True), dist.all_reduce(n, async_op=True)]
    time.sleep(0.2)  # The operations themselves have long ended.
    before = [x.isnan().all().item(), n.tolist()]
    for work in works:
        work.wait()
    return before, x.tolist(), n.tolist(), observer.take_races()


def test_outputs_are_poison_until_the_wait(tmp_path: Path) -> None:
    for before, x, n, races in on_ranks(_poison, "hostile", tmp_path):
        assert before == [True, [-1, -1]]
        assert (x, n) == ([3.0, 3.0], [3, 3])
        assert races == []


def _touch(rank: int) -> Any:
    dist.all_reduce(torch.ones(1))  # number 0
    given, got = torch.ones(3), torch.zeros(3 * N)
    work = dist.all_gather_into_tensor(got, given, async_op=True)
    if rank == 0:
        given[2] = 5
    if rank == 1:
        got[4] = 5
    work.wait()
    touched = observer.take_races()
    freed = torch.ones(3)
    work = dist.all_gather_into_tensor(got, freed, async_op=True)
    freed.untyped_storage().resize_(0)
    work.wait()
    in_place = torch.ones(4)
    work = dist.all_reduce(in_place, async_op=True)
    in_place[1:].zero_()
    work.wait()
    return touched, observer.take_races(), got.tolist(), in_place.tolist()


def test_a_touched_tensor_is_a_race_and_changes_no_result(tmp_path: Path) -> None:
    operation = {"operation": "all_gather of 3 fp32 to 9", "number": 1}
    expected: list[Any] = [
        [{"kind": "input touched in flight", "element": 2, **operation}],
        [{"kind": "output touched in flight", "element": 4, **operation}],
        [],
    ]
    results = on_ranks(_touch, "hostile", tmp_path)
    assert [touched for touched, _, _, _ in results] == expected
    for _, races, got, in_place in results:
        assert [(r["kind"], r["number"], r["element"]) for r in races] == [
            ("input touched in flight", 2, 0),
            ("input touched in flight", 3, 1),
            ("output touched in flight", 3, 1),
        ]
        assert got == [1.0] * 9
        assert in_place == [3.0] * 4


def _forget(rank: int) -> Any:
    x = torch.ones(2)
    dist.all_reduce(x, async_op=True)
    return observer.take_races(), x.isnan().all().item()


def test_an_operation_that_nobody_waits_for_is_a_race(tmp_path: Path) -> None:
    expected = {
        "kind": "never waited for",
        "operation": "all_reduce of 2 fp32 to 2, sum",
        "number": 0,
        "element": 0,
    }
    for races, poisoned in on_ranks(_forget, "hostile", tmp_path):
        assert races == [expected]
        assert poisoned


def _poll(rank: int) -> Any:
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    seen = x.tolist()
    del work
    return seen, observer.take_races()


def test_to_see_it_complete_is_to_wait(tmp_path: Path) -> None:
    for seen, races in on_ranks(_poll, "hostile", tmp_path):
        assert seen == [3.0, 3.0]
        assert races == []


def _future(rank: int) -> Any:
    x, y = torch.ones(2), torch.ones(1)

    def then(future: Any) -> Any:
        # A callback that waits for the next operation, as compressing hooks do.
        dist.all_reduce(y, async_op=True).get_future().wait()
        return future.value()[0] + y

    result = dist.all_reduce(x, async_op=True).get_future().then(then).wait()
    forgotten = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    del forgotten
    return result.tolist(), x.tolist(), observer.take_races()


@pytest.mark.parametrize("mode", ["metered", "hostile"])
def test_a_future_delivers(tmp_path: Path, mode: str) -> None:
    for result, x, races in on_ranks(_future, mode, tmp_path):
        assert result == [6.0, 6.0]
        assert x == [3.0, 3.0]
        assert races == []


def _refuse(rank: int) -> Any:
    x = torch.ones(2)
    with pytest.raises((RuntimeError, ValueError)):
        dist.all_gather_into_tensor(torch.zeros(1), x)
    with pytest.raises(RuntimeError):
        dist.all_reduce(torch.eye(2).to_sparse())
    return x.tolist()


def test_a_refused_operation_leaves_its_tensors(tmp_path: Path) -> None:
    for x in on_ranks(_refuse, "hostile", tmp_path):
        assert x == [1.0, 1.0]


# ------------------------------------------------------------------------------ training


def _train(model: Any, wrapped: Any, rank: int) -> Any:
    optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.1)
    observing = dist.get_backend() == observer.BACKEND
    for step in range(3):
        observer.enter(step, "backward") if observing else None
        for micro_step in range(2):
            generator = torch.Generator().manual_seed(100 * step + 10 * micro_step + rank)
            wrapped(torch.randn(4, 5, generator=generator)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    parameters = [getattr(p, "full_tensor", lambda p=p: p)() for p in model.parameters()]
    return (
        _bits(parameters),
        observer.take_records() if observing else [],
        observer.take_races() if observing else [],
    )


def _model() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))


def _ddp(rank: int) -> Any:
    model = _model()
    wrapped = torch.nn.parallel.DistributedDataParallel(
        model, bucket_cap_mb=2e-5, gradient_as_bucket_view=True
    )
    return _train(model, wrapped, rank)


def _fsdp2(rank: int) -> Any:
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (N,))
    model = _model()
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return _train(model, fully_shard(model, mesh=mesh), rank)


@pytest.mark.parametrize("body", [_ddp, _fsdp2])
def test_training_gives_the_same_bits(tmp_path: Path, body: Body) -> None:
    expected = on_ranks(body, "gloo", tmp_path)
    metered = on_ranks(body, "metered", tmp_path)
    hostile = on_ranks(body, "hostile", tmp_path)
    for rank in range(N):
        assert metered[rank][0] == expected[rank][0]
        assert hostile[rank][0] == expected[rank][0]
        assert hostile[rank][2] == []
        assert hostile[rank][1] == metered[rank][1]
        assert all(record["awaited"] for record in metered[rank][1])


def test_ddp_reduces_each_gradient_in_each_micro_step(tmp_path: Path) -> None:
    elements = sum(p.numel() for p in _model().parameters())
    for _, records, _ in on_ranks(_ddp, "hostile", tmp_path):
        for step in range(3):
            reduced = [
                r["in_elements"]
                for r in records
                if (r["action"], r["op"], r["type"]) == (step, "all_reduce", "fp32")
            ]
            assert sum(reduced) == 2 * elements
            assert step == 0 or len(reduced) == 2 * 3  # buckets, once they are rebuilt


def test_fsdp2_scatters_each_gradient_in_each_micro_step(tmp_path: Path) -> None:
    # Rows are padded to a multiple of the number of ranks: 7 and 2 rows to 9 and 3.
    padded = 9 * 5 + 9 + 3 * 7 + 3
    for _, records, _ in on_ranks(_fsdp2, "metered", tmp_path):
        for step in range(3):
            scattered = [r for r in records if (r["action"], r["op"]) == (step, "reduce_scatter")]
            assert sum(r["in_elements"] for r in scattered) == 2 * padded
            assert all(r["in_elements"] == N * r["out_elements"] for r in scattered)


# ------------------------------------------------------------------------------ building


def _build(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zeroproof_adapter.observer"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    build = _build(ZEROPROOF_CACHE=str(tmp_path), CXX="no-such-compiler")
    assert build.returncode == 1
    assert "no 'no-such-compiler': install one (apt install g++)" in build.stderr


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    build = _build(ZEROPROOF_CACHE=str(tmp_path / "file"))
    assert build.returncode == 1
    assert "set ZEROPROOF_CACHE to a folder that can be written to" in build.stderr


def test_what_is_built_is_not_built_again() -> None:
    build = _build()
    assert build.returncode == 0
    assert build.stderr == ""
    assert Path(build.stdout.strip()).exists()
