"""What a command prints and writes: results as JSON or text, progress on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ml import files
from ml.reports.figures import figures_of, to_jsonable
from ml.types import Progress, no_progress


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """A ``Progress`` that draws a bar on standard error, or nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    from tqdm import tqdm

    bar: tqdm[Any] = tqdm(total=0, leave=False, dynamic_ncols=True)

    def show(done: int, total: int, phase: str) -> None:
        bar.total = total
        bar.set_description(phase, refresh=False)
        bar.n = done
        bar.refresh()

    try:
        yield show
    finally:
        bar.close()


def show(text: str) -> None:
    """Print ``text`` for people, if there is any."""
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def write_json(result: Mapping[str, Any], out: str) -> None:
    """Write ``result`` to the file ``out`` (whole or not at all), or to the screen for ``-``."""
    text = json.dumps(to_jsonable(result), indent=2, allow_nan=False)
    if out == "-":
        show(text)
        return
    files.write_text(Path(out), text + "\n")


def write_figures(result: Mapping[str, Any], out: Path) -> None:
    """Write the figures of ``result`` alone, see ``figures_of``, whole or not at all."""
    files.write_json(out, figures_of(result))


def check_writable(path: Path) -> None:
    """Refuse a file that no result can be written to, before hours of work are spent.

    Raises:
        FileNotFoundError, IsADirectoryError, PermissionError: naming the file or folder.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "No such directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path.parent))


def describe_result(result: Mapping[str, Any]) -> str:
    """One ``name: value`` line for each plain value; lists and objects only by their size."""
    lines = []
    for name, value in to_jsonable(result).items():
        text = str(value)
        if isinstance(value, list | dict):
            text = f"{len(value)} {'values' if isinstance(value, list) else 'entries'}"
        elif isinstance(value, float):
            text = f"{value:.6g}"
        lines.append(f"{name}: {text}")
    return "\n".join(lines)
