"""Checkpoints of DeepSpeed: as saved, or by way of its universal format for other world sizes."""

from __future__ import annotations

import io
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch.distributed as dist
from deepspeed.checkpoint import ds_to_universal

from zeroproof_adapter.cases import Case
from zeroproof_adapter.trainer import Rejected


def needs_universal(folder: Path, case: Case) -> bool:
    """Whether a checkpoint is of another number of ranks. Raises Rejected for what no format of
    DeepSpeed bridges."""
    saved = _saved(folder)
    of_stage_3 = any(saved.glob("zero_pp_rank_*_model_states.pt"))
    if of_stage_3 != (case.stage == 3):
        raise Rejected("DeepSpeed has no way between checkpoints of stage 3 and of others")
    return len(list(saved.glob("*_optim_states.pt"))) != case.ranks


def load(engine: Any, folder: Path, universal: bool) -> None:
    """Into an engine that was made for a universal checkpoint or another; all ranks together."""
    if universal:
        if dist.get_rank() == 0:
            _convert(_saved(folder))
        dist.barrier()
    path, _ = engine.load_checkpoint(str(folder))
    if path is None:
        raise RuntimeError(f"load_checkpoint() found nothing in {folder}")


def _saved(folder: Path) -> Path:
    return folder / (folder / "latest").read_text(encoding="utf-8").strip()


def _convert(saved: Path) -> None:
    """What `python -m deepspeed.checkpoint.ds_to_universal` does."""
    arguments = Namespace(
        input_folder=str(saved),
        output_folder=f"{saved}_universal",
        num_extract_workers=1,
        num_merge_workers=1,
        keep_temp_folder=False,
        strict=True,
        inject_missing_state=True,
    )
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        ds_to_universal.main(arguments)
