"""Build the observing backend ahead of its first use."""

import sys

from .build import ObserverUnavailable, library_path, load

if __name__ == "__main__":
    try:
        load()
    except ObserverUnavailable as error:
        sys.exit(f"error: {error}")
    print(library_path())
