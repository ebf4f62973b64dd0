"""Training steps of PyTorch, taken when asked for: what `zeroproof train` is timed beside.

    python -m zeroproof_adapter.training_peer MODEL --peer ddp --ranks 2 --samples 4 --threads 1

MODEL is a file of scenarios/models. All ranks are started from here. Once they are ready, a line of
JSON that describes them is written to standard output. Then for each line with a number, read from
standard input, so many steps are taken, and the seconds of each are written as one line: a step
takes as long as its slowest rank. Ends with its input.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from zeroproof_adapter.transformer import Shape, Transformer

WARM_UP = 2
CLIP_NORM = 1.0


@dataclass(frozen=True)
class Options:
    model: Path
    peer: str  # ddp or fsdp2
    ranks: int
    samples: int  # of a rank
    threads: int  # of a rank


def shape_in(file: Path) -> Shape:
    document: dict[str, Any] = json.loads(file.read_text())
    known = {field.name for field in fields(Shape)}
    return Shape(**{key: value for key, value in document.items() if key in known})


def initialised(shape: Shape) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(shape)
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
    return model


def wrapped(model: Transformer, options: Options) -> nn.Module:
    if options.peer == "ddp":
        return DistributedDataParallel(model, gradient_as_bucket_view=True)
    mesh = init_device_mesh("cpu", (options.ranks,))
    for block in model.block:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


class Rank:
    """One process of the training."""

    def __init__(self, options: Options, rank: int) -> None:
        self._samples = options.samples
        self._shape = shape_in(options.model)
        self._model = wrapped(initialised(self._shape), options)
        self._draws = torch.Generator().manual_seed(rank)
        self._optimizer, self.is_fused = self._faster_optimizer()

    def step(self) -> float:
        tokens, targets = self._batch(), self._batch()
        dist.barrier()
        begin = time.perf_counter()
        self._gradients(tokens, targets)
        self._optimizer.step()
        return time.perf_counter() - begin

    def _batch(self) -> Tensor:
        size = (self._samples, self._shape.sequence)
        return torch.randint(self._shape.vocabulary, size, generator=self._draws)

    def _gradients(self, tokens: Tensor, targets: Tensor) -> None:
        self._model.zero_grad()
        loss: Tensor = self._model(tokens, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(self._model.parameters(), CLIP_NORM)

    def _adamw(self, fused: bool) -> torch.optim.AdamW:
        matrices = [weight for weight in self._model.parameters() if weight.dim() > 1]
        others = [weight for weight in self._model.parameters() if weight.dim() <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            groups, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=fused or None
        )

    def _faster_optimizer(self) -> tuple[torch.optim.AdamW, bool]:
        """The fused form or the other one; all ranks take the same."""
        self._gradients(self._batch(), self._batch())
        seconds = torch.zeros(2)
        for fused in (False, True):
            optimizer = self._adamw(fused)
            optimizer.step()  # makes its state
            begin = time.perf_counter()
            for _ in range(3):
                optimizer.step()
            seconds[int(fused)] = time.perf_counter() - begin
        dist.all_reduce(seconds)
        is_fused = bool(seconds[1] < seconds[0])
        return self._adamw(is_fused), is_fused


def run_rank(options: Options, rank: int, store: str, channel: Connection) -> None:
    torch.set_num_threads(options.threads)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=options.ranks)
    trained = Rank(options, rank)
    for _ in range(WARM_UP):
        trained.step()
    channel.send(trained.is_fused)
    while (steps := channel.recv()) > 0:
        channel.send([trained.step() for _ in range(steps)])
    dist.destroy_process_group()


def description(options: Options, is_fused: bool) -> dict[str, Any]:
    return {
        "peer": options.peer,
        "torch": str(torch.__version__),
        "optimizer": f"AdamW(fused={is_fused})",
        "threads": options.threads,
    }


def serve(options: Options, channels: Sequence[Connection]) -> None:
    is_fused = {bool(channel.recv()) for channel in channels}.pop()  # all say the same
    print(json.dumps(description(options, is_fused)), flush=True)
    for line in sys.stdin:
        for channel in channels:
            channel.send(int(line))
        of_ranks: list[list[float]] = [channel.recv() for channel in channels]
        print(*(max(of_step) for of_step in zip(*of_ranks)), flush=True)
    for channel in channels:
        channel.send(0)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="zeroproof_adapter.training_peer", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--peer", choices=["ddp", "fsdp2"], required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = Options(**vars(parser.parse_args(argv)))
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        channels, processes = [], []
        for rank in range(options.ranks):
            here, there = context.Pipe()
            arguments = (options, rank, f"file://{folder}/store", there)
            processes.append(context.Process(target=run_rank, args=arguments, daemon=True))
            processes[-1].start()
            there.close()  # so that a rank that ends is noticed
            channels.append(here)
        try:
            serve(options, channels)
        except EOFError:
            print("a rank has ended", file=sys.stderr)
            return 1
        for process in processes:
            process.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
