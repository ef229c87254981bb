"""``make bench``. On two cores it takes some minutes; keep the machine idle."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measure import Section

SEPARATE_MEASURES = ("search", "mixed --servers", "uploads", "frames")
OF_DATA = ("outlines",)
"""Measured in processes of their own, one after the other: Django is set up on SQLite in this one,
it has more threads than a web process, and a browser forbids the database. Those of the second
kind need ``TESSERA_DATA``."""


def main() -> int:
    """Measure, print, write the report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        from tests.bench.portal import portal_open

        portal = portal_open(folder)
        from tests.bench import (
            http_tiles,
            imports,
            keypoints,
            live_updates,
            mixed,
            models,
            mosaics,
            report,
            tiles,
            webhooks,
            windows,
        )

        data = os.environ.get("TESSERA_DATA")
        real = Path(data) / "histology/slides/cmu-1-small-region.svs" if data else None
        measured: list[Section] = []
        for measure in (
            lambda: tiles.tiles_in_process(portal.slide_path, real=real),
            lambda: http_tiles.tiles_over_http(portal),
            lambda: mixed.mixed_load(portal),
            lambda: live_updates.others_edits(portal),
            lambda: imports.import_of_many(portal),
            lambda: webhooks.webhooks_to_a_failing_receiver(portal),
            lambda: windows.rois_per_window(portal),
            lambda: models.roi_to_embedding(portal.slide_path),
            lambda: models.roi_sizes(portal.slide_path),
            keypoints.pair_by_descriptor,
            lambda: mosaics.mosaic_of_frames(folder),
        ):
            measurement = measure()
            for section in measurement if isinstance(measurement, list) else [measurement]:
                measured.append(section)
                _print(section)
    report.write(measured, commit=report.commit_here())
    separate = (*SEPARATE_MEASURES, *(OF_DATA if data else ()))
    return run_separately(separate)


def run_separately(commands: Sequence[str]) -> int:
    """Run each to its end; 0 where all ended well, 1 where one failed or was killed."""
    codes = [_run_in_process(*command.split()) for command in commands]
    return int(any(codes))


def _run_in_process(module: str, *arguments: str) -> int:
    """The return code: below 0 where a signal ended the process."""
    command = [sys.executable, "-m", f"tests.bench.{module}", *arguments, "--write"]
    return subprocess.run(command, check=False).returncode


def _print(section: Section) -> None:
    print(section.title)
    for row in section.rows:
        ratio = "" if row.ratio is None else f"{row.ratio:8.2f}x against {row.against}"
        print(f"  {row.what:<55} {row.value:12.4f} {row.unit:<10} {ratio}")


if __name__ == "__main__":
    sys.exit(main())
