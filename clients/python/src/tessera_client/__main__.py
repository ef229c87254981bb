"""``tessera-upload --case T-1001 FILES``: upload slides and videos from the command line.

All files of a folder are sent; those of one slide (MRXS, VMS, VMU, DICOM, OME-Zarr) go together.
"""

from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tessera_client.errors import SignInError, TesseraError, UnreachableError
from tessera_client.files import bar
from tessera_client.models import Case
from tessera_client.sets import find_uploads
from tessera_client.sync import Client


def main(argv: Sequence[str] | None = None) -> int:
    """Upload the files in turn; returns 1 if one failed, 2 if a setting is missing."""
    options = _arguments().parse_args(argv)
    token = os.environ.get("TESSERA_TOKEN", "")
    if not options.url or not token:
        print("Set TESSERA_URL (or --url) and TESSERA_TOKEN.", file=sys.stderr)
        return 2
    paths, failure_count = _paths_to_send(options.files)
    with Client(options.url, token) as tessera:
        try:
            case = _case(tessera, options.case, options.create)
        except TesseraError as error:
            print(f"{options.case}: {error}", file=sys.stderr)
            return 1
        for path in paths:
            try:
                item = tessera.upload(case, path, progress=bar(path.name) if options.bar else False)
            except (SignInError, UnreachableError) as error:
                print(f"{path}: {error}", file=sys.stderr)
                return 1  # the next file would not fare better
            except (TesseraError, OSError) as error:
                print(f"{path}: {error}", file=sys.stderr)
                failure_count += 1
            else:
                print(f"{path}: {type(item).__name__.lower()} {item.id}")
    return 1 if failure_count else 0


def _paths_to_send(files: Sequence[Path]) -> tuple[list[Path], int]:
    """Return the paths to send, and the number of paths that could not be read."""
    paths: list[Path] = []
    failure_count = 0
    for path in files:
        try:
            paths += find_uploads(path) if path.is_dir() else [path]
        except OSError as error:
            print(f"{path}: {error}", file=sys.stderr)
            failure_count += 1
    return paths, failure_count


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tessera-upload", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="files and folders")
    parser.add_argument("--case", required=True, help="accession number")
    parser.add_argument("--create", action="store_true", help="create the case if there is none")
    parser.add_argument(
        "--url", default=os.environ.get("TESSERA_URL"), help="of the portal (default: TESSERA_URL)"
    )
    parser.add_argument("--bar", action="store_true", help="show progress (needs tqdm)")
    return parser


def _case(tessera: Client, accession: str, create: bool) -> Case:
    normalized = unicodedata.normalize("NFC", " ".join(accession.split()))
    for case in tessera.cases(accession=normalized):
        if case.accession == normalized:
            return case
    if not create:
        raise TesseraError("no such case; --create creates it")
    return tessera.create_case(accession)


if __name__ == "__main__":
    sys.exit(main())
