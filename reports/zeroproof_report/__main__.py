"""python3 -m zeroproof_report PAGE --record FILE --name NAME ...

Records are files that `zeroproof report` has checked; each has the name that readers know it by.
Ends with 3 where a package is missing, and says which.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_PACKAGE_MISSING = 3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="zeroproof_report")
    parser.add_argument("page", type=Path, help="the page to write; figures go beside it")
    parser.add_argument("--record", type=Path, action="append", required=True)
    parser.add_argument("--name", action="append", required=True)
    options = parser.parse_args(arguments)
    if len(options.name) != len(options.record):
        parser.error("as many names as records")
    try:
        from zeroproof_report.report import write_report
    except ModuleNotFoundError as missing:
        package = (missing.name or "").split(".")[0]
        if package not in ("matplotlib", "jinja2"):
            raise
        sys.stdout.write(f"there is no module {package}")
        return _PACKAGE_MISSING
    figures = write_report(options.page, list(zip(options.name, options.record)))
    sys.stdout.write(f"{options.page}: {figures} figure{'' if figures == 1 else 's'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
