"""ZeroRedundancyOptimizer over torch.optim.Adam or AdamW, beneath DistributedDataParallel: stage 1
in fp32. Whole parameters are dealt out to ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from zeroproof_adapter.subjects import torch_ddp
from zeroproof_adapter.subjects.torch_ddp import version
from zeroproof_adapter.torch_subject import Piece
from zeroproof_adapter.torch_tools import adam_class, adam_groups

PACKAGES = ["torch"]

__all__ = ["PACKAGES", "TRAINER", "version"]


class TorchZero1(torch_ddp.TorchDdp):
    name = "torch-zero1"
    stages = frozenset({1})
    options = torch_ddp.DDP_OPTIONS | {"parameters_as_bucket_view"}
    optimizer: ZeroRedundancyOptimizer

    def make_optimizer(self) -> None:
        self.optimizer = ZeroRedundancyOptimizer(
            adam_groups(self.case, self.model.weights()),
            optimizer_class=adam_class(self.case),
            parameters_as_bucket_view=self.case.options.get("parameters_as_bucket_view", False),
        )

    def pieces(self) -> Sequence[Piece]:
        """Which parameters are a rank's own only its local optimizer tells."""
        own = {id(p) for group in self.optimizer.optim.param_groups for p in group["params"]}
        return [piece for piece in super().pieces() if id(piece.parameter) in own]

    def state_of(self, parameter: nn.Parameter) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.optimizer.optim.state.get(parameter, {}))

    def states(self) -> Iterable[Mapping[str, Any]]:
        """Also those that loading leaves in the outer optimizer."""
        yield from super().states()
        yield from (state for state in self.optimizer.state.values() if state)

    def parameter_storages(self) -> Iterable[Tensor | None]:
        yield from super().parameter_storages()
        for buckets in self.optimizer._buckets:  # of parameters_as_bucket_view
            yield from buckets

    def save(self, folder: Path) -> None:
        self.optimizer.consolidate_state_dict(to=0)
        super().save(folder)


TRAINER = TorchZero1
