"""DeepSpeed's ZeRO stages 1 to 3 on a CPU, unmodified, through its public interface."""

from __future__ import annotations

import importlib
import io
import logging
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

# Read while DeepSpeed is imported, which is why nothing may import it earlier.
os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.comm.torch import build_shm_op
from deepspeed.utils import (
    logger,
    safe_get_full_grad,
    safe_get_local_grad,
    safe_set_full_grad,
    safe_set_local_grad,
)

from zeroproof_adapter import deepspeed_checkpoint
from zeroproof_adapter.cases import Case
from zeroproof_adapter.deepspeed_checkpoint import needs_universal
from zeroproof_adapter.deepspeed_config import OPTIONS, configuration
from zeroproof_adapter.deepspeed_state import (
    bytes_at_rest,
    loss_scale,
    owned_pieces,
    slices,
    steps_taken,
)
from zeroproof_adapter.evidence import State, StepReport
from zeroproof_adapter.torch_models import CaseModel
from zeroproof_adapter.torch_tools import adam, adam_groups
from zeroproof_adapter.torch_trainer import TorchTrainer
from zeroproof_adapter.trainer import Rejected

PACKAGES = ["torch", "deepspeed"]
logger.setLevel(logging.WARNING)
# DeepSpeed calls collectives of torch by names that torch is about to drop.
warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")


def version() -> str:
    return str(deepspeed.__version__)


class DeepSpeed(TorchTrainer):
    name = "deepspeed"
    stages = frozenset({1, 2, 3})
    precisions = frozenset({"fp32", "bf16", "fp16"})
    options = OPTIONS
    observes = frozenset({
        "ownership", "gradient", "momentum", "variance", "master", "weights", "echoes", "norm",
        "skips", "loss_scale", "steps", "live_bytes",
    })  # fmt: skip

    @classmethod
    def prepare(cls) -> None:
        super().prepare()
        # What each rank's first engine would import and compile for itself.
        importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")
        with redirect_stdout(io.StringIO()):
            build_shm_op()

    def __init__(self, case: Case, rank: int, ranks: int) -> None:
        if not any(p.trainable and p.elements for p in case.parameters):
            raise Rejected("DeepSpeed's optimizers want an element to train")
        accelerator = deepspeed.accelerator.get_accelerator()
        if case.precision == "fp16" and not accelerator.is_fp16_supported():
            raise Rejected("DeepSpeed does not train in fp16 on this machine's processor")
        self.universal = case.load_from is not None and needs_universal(case.load_from, case)
        super().__init__(case, rank, ranks, torch.float32)  # the engine casts
        with redirect_stdout(io.StringIO()):
            deepspeed.init_distributed(dist_backend=dist.get_backend(), verbose=False)
        self._make_engine()
        # With a zero_grad in between, windows do not come every GA micro-steps; the engine's
        # interface has a call for that.
        self.own_boundary = any(a.kind == "zero_grad" for a in case.actions)
        self.gradients: dict[str, torch.Tensor] = {}

    def _make_engine(self) -> None:
        groups = adam_groups(self.case, self.model.weights())
        # The engine drops groups without parameters, so that numbers are no longer the case's.
        self.position = {
            g: i for i, g in enumerate(g for g, group in enumerate(groups) if group["params"])
        }
        further = {"checkpoint": {"load_universal": True}} if self.universal else {}
        self.engine, *_ = deepspeed.initialize(
            model=self.model,
            optimizer=adam(self.case, self.model.weights()),
            config=configuration(self.case, **further),
        )
        self.weights = dict(self.model.weights())
        if self.case.precision != "fp32":
            # The engine makes masters of weights that it has rounded already: what the case begins
            # with is set by its interface for states.
            for piece in owned_pieces(self.weights, self.rank):
                piece.set_master(torch.tensor(self.case.initial(piece.name)))

    def micro_step(self, micro_step: int, synchronise: bool) -> None:
        if self.own_boundary:
            self.engine.set_gradient_accumulation_boundary(synchronise)
        loss = self.engine(micro_step)
        self.enter("backward")
        self.engine.backward(loss)
        if not synchronise and not self.own_boundary:
            self.engine.step()  # as its users do; only the last of the window steps

    def step(self) -> StepReport:
        scale = loss_scale(self.engine)
        self.enter("read")
        pieces = owned_pieces(self.weights, self.rank)
        self.gradients = {piece.name: piece.gradient() / scale for piece in pieces}
        self.enter("step")
        self.engine.step()
        skipped = not self.engine.was_step_applied()
        return StepReport(skipped, float(self.engine.get_global_grad_norm()))

    def zero_grad(self, by: str) -> None:
        (self.engine.optimizer if by == "optimizer" else self.engine).zero_grad()

    def evaluate(self) -> None:
        self.engine.eval()
        with torch.no_grad():
            self.engine(None)
        self.engine.train()

    def set_learning_rate(self, group: int, value: float) -> None:
        if group in self.position:
            self.engine.optimizer.param_groups[self.position[group]]["lr"] = value

    def scale_weight(self, parameter: str, factor: float) -> None:
        weight = self.weights[parameter]
        with self._whole([weight], modifier_rank=0), torch.no_grad():
            weight.mul_(factor)
        for piece in owned_pieces({parameter: weight}, self.rank):
            piece.scale_master(factor)

    def scale_gradient(self, parameter: str, factor: float) -> None:
        weight = self.weights[parameter]
        if self.case.stage == 3:
            safe_set_local_grad(weight, safe_get_local_grad(weight) * factor)
        else:
            safe_set_full_grad(weight, safe_get_full_grad(weight) * factor)

    def save(self, folder: Path) -> None:
        self.engine.save_checkpoint(str(folder))

    def load(self, folder: Path) -> None:
        if self.case.stage == 3 and self.engine.global_steps:
            self._start_anew()
        deepspeed_checkpoint.load(self.engine, folder, self.universal)

    def _start_anew(self) -> None:
        """A new engine, as load_checkpoint() of stage 3 asks for in its documentation."""
        self.engine.destroy()
        echoes, on_pass = self.model.echoes, self.model.on_pass
        self.model = CaseModel(self.case, self.rank, torch.float32)
        self.model.echoes, self.model.on_pass = echoes, on_pass
        self._make_engine()

    def read(self, after_step: bool) -> State:
        sizes = bytes_at_rest(self.engine, self.weights)
        pieces = owned_pieces(self.weights, self.rank)
        parts = slices(pieces, self.engine.optimizer, self.gradients if after_step else None)
        with self._whole(self.weights.values()):
            weights = {n: w.detach().clone() for n, w in self.weights.items()}
        return State(
            parts,
            weights,
            steps_taken(self.engine),
            self.engine.skipped_steps,
            loss_scale(self.engine),
            sizes,
        )

    @contextmanager
    def _whole(
        self, weights: Iterable[torch.nn.Parameter], modifier_rank: int | None = None
    ) -> Iterator[None]:
        """Makes weights whole; what the rank has changed in them is everybody's afterwards."""
        if self.case.stage < 3:
            yield
            return
        with deepspeed.zero.GatheredParameters(list(weights), modifier_rank=modifier_rank):
            yield

    def close(self) -> None:
        self.engine.destroy()


TRAINER = DeepSpeed
