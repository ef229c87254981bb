"""``python -m tests.bench.mixed --minutes 10`` runs only this and prints the result;
``--servers`` on a PostgreSQL and a Redis of its own; ``--write`` puts it into the report,
``--write memory`` only the memory, where the machine has other work to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench import report
from tests.bench.mixed.report import MEMORY, TITLE
from tests.bench.mixed.run import mixed_load, mixed_load_on_servers
from tests.bench.portal import portal_open


def main() -> int:
    """Run this measurement only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--servers", action="store_true", help="on PostgreSQL and Redis")
    parser.add_argument(
        "--write", nargs="?", const="all", choices=("all", "memory"), help="into docs/benchmarks.md"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.servers:
            sections = mixed_load_on_servers(folder, minutes=options.minutes)
        else:
            sections = mixed_load(portal_open(folder), minutes=options.minutes)
    after = TITLE
    for section in sections:
        if options.write == "all" or (options.write and section.title.startswith(MEMORY)):
            report.replace(section, after=after)
        after = section.title
        print(f"{section.title}\n{section.note}")
        for row in section.rows:
            print(f"  {row.what:<72} {row.value:10.2f} {row.unit:<8} {row.budget}")
        for line in section.over_time:
            print("  ", *(f"{cell:>6}" for cell in line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
