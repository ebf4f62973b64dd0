"""Builds the extension with torch's own tools, once for each version of torch, and loads it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch

NAME = "zeroproof_observer"
_FOLDER = Path(__file__).parent
_SOURCES = ("backend.cpp", "flight.h", "recorder.h", "work.h")


class ObserverUnavailable(RuntimeError):
    """The backend cannot be built or loaded here; the message says what to do about it."""


def load(cache_dir: Path | None = None) -> ModuleType:
    """The extension, from the cache or built into it. Of several processes, one builds."""
    library = library_path(cache_dir)
    if not library.exists():
        try:
            library.parent.mkdir(parents=True, exist_ok=True)
            with _locked(library.with_suffix(".lock")):
                if not library.exists():
                    return _build(library)
        except OSError as error:
            raise ObserverUnavailable(
                f"cannot build the observing backend in {library.parent}: {error}; "
                "set ZEROPROOF_CACHE to a folder that can be written to"
            ) from error
    return _import(library)


def library_path(cache_dir: Path | None = None) -> Path:
    """Where the extension for this Python, this torch and these sources is kept."""
    if cache_dir is None:
        own = os.environ.get("ZEROPROOF_CACHE")
        common = os.environ.get("XDG_CACHE_HOME")
        cache_dir = Path(own) if own else Path(common or Path.home() / ".cache") / "zeroproof"
    digest = hashlib.sha256(sys.implementation.cache_tag.encode())
    for source in _SOURCES:
        digest.update((_FOLDER / source).read_bytes())
    folder = f"observer-{torch.__version__}-{digest.hexdigest()[:12]}"
    return cache_dir.absolute() / folder / f"{NAME}.so"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The lock ends with its process, so that a killed build holds up nobody.
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(library: Path) -> ModuleType:
    _check_tools()
    from torch.utils.cpp_extension import load as build_and_load

    print(
        f"building the observing backend for torch {torch.__version__.split('+')[0]}, "
        "about half a minute ...",
        file=sys.stderr,
        flush=True,
    )
    begin = time.monotonic()
    # What a killed build left is not to be trusted, a lock of torch's among it.
    workplace = library.parent / "build"
    shutil.rmtree(workplace, ignore_errors=True)
    workplace.mkdir()
    try:
        with _ninja_on_path():
            module = build_and_load(
                NAME,
                [str(_FOLDER / "backend.cpp")],
                extra_cflags=["-O1"],
                build_directory=str(workplace),
            )
    except (RuntimeError, ImportError, subprocess.CalledProcessError) as error:
        raise ObserverUnavailable(
            f"the observing backend does not build for torch {torch.__version__}: {error}"
        ) from error
    assert isinstance(module, ModuleType) and module.__file__ is not None
    # Under its final name it is always whole.
    Path(module.__file__).rename(library)
    shutil.rmtree(workplace, ignore_errors=True)
    print(f"built in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return module


def _check_tools() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise ObserverUnavailable(
            f"the observing backend is built on first use and needs a C++ compiler, but there is "
            f"no '{compiler}': install one (apt install g++) or set CXX"
        )
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise ObserverUnavailable(
            "the observing backend is built on first use and needs the headers of Python: "
            "install them (apt install python3-dev)"
        )
    for module in ("ninja", "setuptools"):
        found = importlib.util.find_spec(module) is not None
        if not found and not (module == "ninja" and shutil.which("ninja")):
            raise ObserverUnavailable(
                f"the observing backend is built on first use and needs {module}: "
                f"install it (pip install {module})"
            )


@contextlib.contextmanager
def _ninja_on_path() -> Iterator[None]:
    # A virtual environment that is used without being activated is not on the path.
    before = os.environ.get("PATH", "")
    if shutil.which("ninja") is None:
        os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _import(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(library))
    spec = importlib.util.spec_from_file_location(NAME, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise ObserverUnavailable(
            f"cannot load {library}: {error}; remove it to have it built again"
        ) from error
    return module
