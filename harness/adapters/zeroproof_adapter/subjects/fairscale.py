"""FairScale with torch.optim.Adam or AdamW in fp32: OSS beneath DistributedDataParallel as stage 1,
OSS beneath ShardedDataParallel as stage 2. Whole parameters are dealt out to ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from fairscale import __version__
from fairscale.nn.data_parallel import ShardedDataParallel
from fairscale.optim.oss import OSS
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from zeroproof_adapter.torch_subject import Piece, TorchSubject
from zeroproof_adapter.torch_tools import adam_class, adam_groups
from zeroproof_adapter.trainer import Rejected

PACKAGES = ["fairscale", "torch"]


def version() -> str:
    return str(__version__)


class Fairscale(TorchSubject):
    name = "fairscale"
    stages = frozenset({1, 2})
    options = frozenset({
        "reduce_buffer_size", "auto_refresh_trainable", "broadcast_buffers",
        "sync_models_at_startup", "force_broadcast_object",
    })  # fmt: skip
    module: Any  # DistributedDataParallel or ShardedDataParallel
    optimizer: OSS

    def wrap(self) -> None:
        if not any(p.trainable for p in self.case.parameters):
            raise Rejected("data parallelism wants a parameter to train")
        self.optimizer = OSS(
            adam_groups(self.case, self.model.weights()),
            optim=adam_class(self.case),
            force_broadcast_object=self.case.options.get("force_broadcast_object", False),
        )
        for _, weight in self.model.weights():  # one that nobody uses has a gradient of zero
            if weight.requires_grad:
                weight.grad = torch.zeros_like(weight)
        self._wrap_model()

    def _wrap_model(self) -> None:
        options = self.case.options
        if self.case.stage == 1:
            self.module = DistributedDataParallel(
                self.model, find_unused_parameters=True, gradient_as_bucket_view=True
            )
            return
        settings = {
            name: options[name]
            for name in (
                "reduce_buffer_size", "auto_refresh_trainable", "broadcast_buffers",
                "sync_models_at_startup",
            )
            if name in options
        }  # fmt: skip
        self.module = ShardedDataParallel(self.model, self.optimizer, **settings)

    def accumulate(self) -> contextlib.AbstractContextManager[Any]:
        return cast("contextlib.AbstractContextManager[Any]", self.module.no_sync())

    def pieces(self) -> Sequence[Piece]:
        own = {id(p) for group in self.optimizer.optim.param_groups for p in group["params"]}
        return [
            Piece(name, 0, weight)
            for name, weight in self.in_optimizer().items()
            if id(weight) in own
        ]

    def state_of(self, parameter: nn.Parameter) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.optimizer.optim.state.get(parameter, {}))

    def states(self) -> Iterable[Mapping[str, Any]]:
        """Also those that loading leaves in the outer optimizer."""
        yield from super().states()
        yield from (state for state in self.optimizer.state.values() if state)

    def clip_gradients(self, bound: float) -> float:
        return float(self.optimizer.clip_grad_norm(bound))

    def begin_window(self) -> None:
        # In place, and not by the optimizer, which would take gradients out of their buckets.
        self.module.zero_grad(set_to_none=False)

    def parameter_storages(self) -> Iterable[Tensor | None]:
        yield from super().parameter_storages()
        for by_rank in self.optimizer.buckets.values():
            yield from (bucket.buffer for bucket in by_rank.values())

    def gradient_storages(self) -> Iterable[Tensor | None]:
        yield from super().gradient_storages()
        yield from (bucket.buffer for bucket in getattr(self.module, "_bucket_list", ()))

    def freeze(self, parameter: str) -> None:
        self.parameters[parameter].requires_grad_(False)
        self.parameters[parameter].grad = None
        self._refresh()

    def unfreeze(self, parameter: str) -> None:
        self.parameters[parameter].requires_grad_(True)
        self.parameters[parameter].grad = torch.zeros_like(self.parameters[parameter])
        self.optimizer.optim.state.pop(self.parameters[parameter], None)
        self.stepped[parameter] = 0
        self._refresh()

    def add_group(self, group: int) -> None:
        super().add_group(group)
        self._refresh()

    def _refresh(self) -> None:
        """Tells what does not see for itself that the set of trained parameters has changed."""
        if self.case.stage == 1:
            self.optimizer.refresh_trainable()
            self._wrap_model()
        elif not self.case.options.get("auto_refresh_trainable", True):
            self.module.refresh_trainable()

    def save(self, folder: Path) -> None:
        self.optimizer.consolidate_state_dict(recipient_rank=0)
        super().save(folder)


TRAINER = Fairscale
