"""``python -m tests.chaos --minutes 10 --seed 1``: prints what was done and what was found."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import chaos


def main() -> int:
    """Exit code 1 where anything was lost, doubled or stuck."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the report there as well")
    options = parser.parse_args()
    # PostgreSQL runs as another user below: the folder must be open to it.
    folder = Path(tempfile.mkdtemp(prefix="tessera-chaos-"))
    folder.chmod(0o755)
    report = chaos(folder, minutes=options.minutes, seed=options.seed)
    text = json.dumps(report, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)
    return 1 if report["breaches"] else 0


if __name__ == "__main__":
    sys.exit(main())
