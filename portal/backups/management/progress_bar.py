"""Progress bar for management commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from ml.types import Progress, no_progress


@contextmanager
def progress_bar(stream: Any) -> Iterator[Progress]:
    """Show progress on ``stream`` if it is a terminal, nothing in a log."""
    if not stream.isatty():
        yield no_progress
        return
    bar: tqdm[Any] = tqdm(total=0, leave=False, dynamic_ncols=True, file=stream)

    def show(done: int, total: int, phase: str) -> None:
        bar.total, bar.n = total, done
        bar.set_description(phase, refresh=False)
        bar.update(0)

    try:
        yield show
    finally:
        bar.close()
