"""``make fuzz``: damage honest files of every format and see that each ends with a named reason.

With ``--uploads`` they are sent to a portal of its own over REST.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.fuzz.run import Outcome, outcomes, tally
from tests.fuzz.uploads import upload_outcomes


def main() -> int:
    """Print outcomes by format; 1 where a file ended as internal, a crash or at a limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="folder for the files that are findings")
    parser.add_argument("--only", nargs="+", default=(), help="names of formats, as the table has")
    parser.add_argument("--uploads", action="store_true", help="over REST, into a portal")
    parser.add_argument("--minutes", type=float, default=10, help="with --uploads")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    result: list[Outcome] = []
    every = (
        upload_outcomes(minutes=options.minutes, seed=options.seed, keep=options.keep)
        if options.uploads
        else outcomes(
            options.count,
            seed=options.seed,
            workers=options.workers,
            keep=options.keep,
            first=options.first,
            only=options.only,
        )
    )
    for outcome in every:
        result.append(outcome)
        if outcome.is_finding or outcome.name == "portal":
            print(f"{outcome.number} {outcome.name}: {outcome.kind}: {outcome.message[-800:]}")
        if len(result) % 100 == 0:
            print(f"{len(result)} files", file=sys.stderr, flush=True)
    print(tally(result))
    return int(any(outcome.is_finding for outcome in result))


if __name__ == "__main__":
    sys.exit(main())
