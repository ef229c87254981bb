"""Output of a command: results as JSON or text, progress on a terminal."""

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
    """Progress bar on standard error if it is a terminal, else no output."""
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
    """Print ``text`` unless it is empty."""
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def write_json(result: Mapping[str, Any], out: str) -> None:
    """Write ``result`` atomically to the file ``out``, or to standard output for ``-``."""
    text = json.dumps(to_jsonable(result), indent=2, allow_nan=False)
    if out == "-":
        show(text)
        return
    files.write_text(Path(out), text + "\n")


def write_figures(result: Mapping[str, Any], out: Path) -> None:
    """Write the figures of ``result``, see ``figures_of``, atomically."""
    files.write_json(out, figures_of(result))


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before the work starts.

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
    """Text with a ``name: value`` line for each value; lists and objects by their size."""
    lines = []
    for name, value in to_jsonable(result).items():
        text = str(value)
        if isinstance(value, list | dict):
            text = f"{len(value)} {'values' if isinstance(value, list) else 'entries'}"
        elif isinstance(value, float):
            text = f"{value:.6g}"
        lines.append(f"{name}: {text}")
    return "\n".join(lines)
