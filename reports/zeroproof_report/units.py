"""Numbers for people."""

from __future__ import annotations


def three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.9995 or value == 0 else f"{value:.3f}"


def _scaled(value: float, step: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            return f"{three_digits(value)} {unit}"
        value /= step
    return f"{three_digits(value)} {units[-1]}"


def seconds(value: float) -> str:
    return _scaled(value * 1e9, 1000, ("ns", "µs", "ms", "s")) if value > 0 else "0 s"


def rate(bytes_per_s: float) -> str:
    return _scaled(bytes_per_s, 1000, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))


def traffic(bytes_: float) -> str:
    """In powers of 1000, as rates are."""
    return _scaled(bytes_, 1000, ("B", "kB", "MB", "GB", "TB")) if bytes_ > 0 else "0 B"


def size(bytes_: float) -> str:
    """In powers of 1024, rounded."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while bytes_ >= 1024 and len(units) > 1:
        bytes_ /= 1024
        units.pop(0)
    text = f"{bytes_:.0f}" if bytes_ == int(bytes_) else three_digits(bytes_)
    return f"{text} {units[0]}"


def per_cent(part: float) -> str:
    return f"{100 * part:.1f} %" if part < 0.0995 else f"{100 * part:.0f} %"


def signed_per_cent(part: float) -> str:
    """Exactly nothing is 0."""
    return f"{100 * part:+.2f} %" if part else "0"


def phi(parameters: int) -> str:
    """A number of parameters, as "25 million"."""
    for name, unit in (("billion", 10**9), ("million", 10**6)):
        if parameters >= unit:
            return f"{parameters / unit:g} {name}"
    return f"{parameters}"


def grouped(value: float) -> str:
    """A whole number in groups of three digits, which no line breaks."""
    return f"{round(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
