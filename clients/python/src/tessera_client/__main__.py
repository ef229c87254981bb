"""``tessera-upload --case T-1001 FILES``: send slides and videos from a command line.

Of a folder everything in it is sent; files that make one slide (MRXS, VMS, VMU, DICOM) go together.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tessera_client.files import bar
from tessera_client.problems import SignInError, TesseraError, UnreachableError
from tessera_client.sets import things_in
from tessera_client.sync import Client
from tessera_client.things import Case


def main(argv: Sequence[str] | None = None) -> int:
    """Send one file after the other; 1 where one was not taken, 2 where a setting is missing."""
    given = _arguments().parse_args(argv)
    token = os.environ.get("TESSERA_TOKEN", "")
    if not given.url or not token:
        print("Set TESSERA_URL (or --url) and TESSERA_TOKEN.", file=sys.stderr)
        return 2
    paths, failed = _sent(given.files)
    with Client(given.url, token) as tessera:
        try:
            case = _case(tessera, given.case, given.create)
        except TesseraError as error:
            print(f"{given.case}: {error}", file=sys.stderr)
            return 1
        for path in paths:
            try:
                item = tessera.upload(case, path, progress=bar(path.name) if given.bar else False)
            except (SignInError, UnreachableError) as error:
                print(f"{path}: {error}", file=sys.stderr)
                return 1  # the next file would not fare better
            except (TesseraError, OSError) as error:
                print(f"{path}: {error}", file=sys.stderr)
                failed += 1
            else:
                print(f"{path}: {type(item).__name__.lower()} {item.id}")
    return 1 if failed else 0


def _sent(named: Sequence[Path]) -> tuple[list[Path], int]:
    """What is sent of files and folders, and how many of these could not be read."""
    paths: list[Path] = []
    failed = 0
    for path in named:
        try:
            paths += things_in(path) if path.is_dir() else [path]
        except OSError as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed += 1
    return paths, failed


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tessera-upload", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="and folders")
    parser.add_argument("--case", required=True, help="accession number")
    parser.add_argument("--create", action="store_true", help="make the case where there is none")
    parser.add_argument("--url", default=os.environ.get("TESSERA_URL"), help="else TESSERA_URL")
    parser.add_argument("--bar", action="store_true", help="show progress (needs tqdm)")
    return parser


def _case(tessera: Client, accession: str, create: bool) -> Case:
    for case in tessera.cases(accession=accession):
        if case.accession == accession:
            return case
    if not create:
        raise TesseraError("no such case; --create makes it")
    return tessera.create_case(accession)


if __name__ == "__main__":
    sys.exit(main())
