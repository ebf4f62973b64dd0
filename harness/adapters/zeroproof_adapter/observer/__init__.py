"""A backend of torch.distributed that writes down each collective and makes races certain.

`install()`, then `init_process_group("zeroproof", ...)`. Data moves through gloo; groups made later
are observed too. All state is that of the process and shared by its groups.
"""

from __future__ import annotations

import atexit
import gc
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict, cast

import torch.distributed as dist

from .build import ObserverUnavailable, load

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Backend, Store

__all__ = [
    "BACKEND",
    "ObserverUnavailable",
    "Race",
    "Record",
    "enter",
    "in_flight",
    "install",
    "set_hostile",
    "take_races",
    "take_records",
]

BACKEND = "zeroproof"


class Record(TypedDict):
    """One operation on one tensor, as this rank started it; a coalesced call has several.

    `op` is a name of the protocol, or `gather` or `scatter`. `type` and `reduction` are names of
    the protocol where it has one, and else say what torch was asked for, as `uint8` or `product`.
    `peer` and `group` are world ranks. `number` counts the operations of the group from 0, through
    the life of the process. `awaited` is as of the call that took the record.
    """

    action: int
    phase: str
    op: str
    reduction: str
    type: str
    in_elements: int
    out_elements: int
    peer: int
    group: list[int]
    number: int
    awaited: bool


class Race(TypedDict):
    """What happened to operation `number` of its group; `element` is the first that was touched."""

    kind: str
    operation: str
    number: int
    element: int


class _Extension(Protocol):
    def ObservingBackend(self, inner: Backend, world_ranks: list[int]) -> Backend: ...  # noqa: N802
    def enter(self, action: int, phase: str) -> None: ...
    def set_hostile(self, seed: int | None, rank: int) -> None: ...
    def take_records(self) -> list[Record]: ...
    def take_races(self) -> list[Race]: ...
    def in_flight(self) -> dict[str, int]: ...
    def drain(self) -> None: ...


class _GroupOptions(Protocol):
    store: Store
    group_rank: int
    group_size: int
    timeout: timedelta
    global_ranks_in_group: list[int]


_extension: _Extension | None = None


def install(cache_dir: Path | None = None) -> None:
    """Register the backend, building it first if this version of torch has not seen it yet.

    It is kept in `cache_dir`, or the folder that ZEROPROOF_CACHE names, or the user's cache.
    Raises ObserverUnavailable if it cannot be had here.
    """
    global _extension
    if _extension is not None:
        return
    if not dist.is_available() or not dist.is_gloo_available():
        raise ObserverUnavailable(
            "this torch was built without torch.distributed or gloo, which the observing backend "
            "forwards to: install another build of torch"
        )
    extension = cast(_Extension, load(cache_dir))
    # Callbacks of futures may need Python, so none may be left when it ends.
    atexit.register(extension.drain)
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])
    _extension = extension


def enter(action: int, phase: str) -> None:
    """From now on operations belong to that action and phase, whichever thread starts them."""
    _installed().enter(action, phase)


def set_hostile(seed: int | None) -> None:
    """Whether operations started from now on are delayed and their outputs poisoned.

    With a seed, outputs hold poison from the start to the wait. `None` ends it.
    """
    rank = dist.get_rank() if dist.is_initialized() else 0
    _installed().set_hostile(None if seed is None else seed % 2**64, rank)


def take_records() -> list[Record]:
    """What was started since the last call, in the order of the starts."""
    return _installed().take_records()


def take_races() -> list[Race]:
    """What was seen since the last call, in hostile surroundings."""
    # An operation that nobody waits for shows when its last reference goes.
    gc.collect()
    return _installed().take_races()


def in_flight() -> dict[str, int]:
    """Number of operations, by name, that the rank has started and may not use the output of yet.

    Those started before the last take_records() are not counted.
    """
    return _installed().in_flight()


def _installed() -> _Extension:
    if _extension is None:
        raise RuntimeError("the observing backend is not installed: call install() first")
    return _extension


def _create(options: _GroupOptions, _: object) -> Backend:
    inner = dist.ProcessGroupGloo(
        options.store, options.group_rank, options.group_size, timeout=options.timeout
    )
    # Empty for the group of all ranks.
    world_ranks = options.global_ranks_in_group or list(range(options.group_size))
    return _installed().ObservingBackend(inner, world_ranks)
