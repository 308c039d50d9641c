"""`python -m tests.benchmarks [NAME ...]`: measure at full size and print the table."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.goals import FULL, GOALS
from tests.benchmarks.measure import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(GOALS)}")
    names = parser.parse_args().names or list(GOALS)
    unknown = [name for name in names if name not in GOALS]
    if unknown:
        parser.error(f"no such benchmark: {unknown[0]} (there are: {', '.join(GOALS)})")
    rows = []
    for name in names:
        sys.stderr.write(f"{name} ...\n")
        rows += GOALS[name](FULL)
    sys.stdout.write(table(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
