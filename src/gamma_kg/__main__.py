"""`gamma` and `python -m gamma_kg`: from the first import on, Ctrl-C ends with one line instead of a traceback."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from gamma_kg.cli import main as run
    except KeyboardInterrupt:
        print("gamma: stopped", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
