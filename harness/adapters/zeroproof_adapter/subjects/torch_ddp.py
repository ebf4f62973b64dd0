"""DistributedDataParallel with torch.optim.Adam or AdamW: stage 0 in fp32."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.nn.parallel import DistributedDataParallel

from zeroproof_adapter.torch_subject import Piece, TorchSubject, tensors_of
from zeroproof_adapter.torch_tools import adam
from zeroproof_adapter.trainer import Rejected

PACKAGES = ["torch"]

DDP_OPTIONS = frozenset({
    "bucket_cap_mb", "gradient_as_bucket_view", "static_graph", "find_unused_parameters",
    "forward_sync_buffers", "batched_grad_copy",
})  # fmt: skip


def version() -> str:
    return str(torch.__version__).split("+")[0]


class TorchDdp(TorchSubject):
    name = "torch-ddp"
    stages = frozenset({0})
    options = DDP_OPTIONS
    module: DistributedDataParallel

    def wrap(self) -> None:
        if not any(p.trainable for p in self.case.parameters):
            raise Rejected("DistributedDataParallel wants a parameter to train")
        options = self.case.options
        settings: dict[str, Any] = {
            # Else a gradient is there twice, and one of the two is out of sight.
            "gradient_as_bucket_view": options.get("gradient_as_bucket_view", True),
            "bucket_cap_mb": options.get("bucket_cap_mb") or self.case.bucket_elements * 4 / 2**20,
            "static_graph": options.get("static_graph", False) and self._graph_is_static(),
            "find_unused_parameters": options.get("find_unused_parameters", False)
            or self._some_unused(),
            "forward_sync_buffers": options.get("forward_sync_buffers", True),
            "batched_grad_copy": options.get("batched_grad_copy", False),
        }
        self.module = DistributedDataParallel(self.model, **settings)
        self.make_optimizer()

    def make_optimizer(self) -> None:
        self.optimizer = adam(self.case, self.model.weights())

    def _some_unused(self) -> bool:
        """Whether some rank's backward leaves a parameter out, which DDP has to be told."""
        used, units = tensors_of(self.case).used, {n for unit in self.case.units for n in unit}
        return any(
            p.trainable and (p.name not in units or not used[p.name].all())
            for p in self.case.parameters
        )

    def _graph_is_static(self) -> bool:
        """Whether each rank uses the same parameters in every pass, as a static graph has to."""
        return all((used == used[:1]).all() for used in tensors_of(self.case).used.values())

    def accumulate(self) -> contextlib.AbstractContextManager[Any]:
        return cast("contextlib.AbstractContextManager[Any]", self.module.no_sync())

    def pieces(self) -> Sequence[Piece]:
        return [Piece(name, 0, weight) for name, weight in self.in_optimizer().items()]


TRAINER = TorchDdp
