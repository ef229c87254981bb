"""Target of the child process: all that the portal does with an uploaded file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ml.errors import MlError
from ml.imaging.deidentification import multi_file, single_file
from ml.imaging.deidentification.result import CLEAN_NAME
from ml.imaging.formats.archives import is_zip
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.sniff import is_dicom_slide, read_head, sniff
from ml.imaging.ingest import inspect_slide, inspect_video, make_rendition
from ml.imaging.slides.tiles import TileSource
from ml.imaging.videos.frame_table_file import load_frame_table
from ml.imaging.videos.video import read_frame
from ml.types import Progress

_TILES, _FRAMES = 6, 4  # of each level, and of a video: enough to meet damage beyond the ingest's


def process_upload(*, path: str, out_dir: str, progress: Progress) -> dict[str, Any]:
    """Look, inspect, and serve what was accepted: {"kind", "unserved"}.

    A tile or frame that cannot be read is a refusal like any other, if it is an ``MlError``.
    """
    path = _without_names(path, out_dir)
    if sniff(path) == "video":
        inspection = inspect_video(path=path, out_dir=out_dir, progress=progress)
        path = str(Path(out_dir) / inspection["pixels"]) if inspection["pixels"] else path
        if not inspection["browser_playable"]:
            make_rendition(path=path, out_dir=out_dir, progress=progress)
        return {"kind": "video", "unserved": _frames(path, Path(out_dir) / inspection["frames"])}
    slide = inspect_slide(path=path, out_dir=out_dir, progress=progress)
    pixels = Path(out_dir) / slide["pixels"] if slide["pixels"] else Path(path)
    return {"kind": slide["kind"], "unserved": _tiles(pixels)}


def _without_names(path: str, out_dir: str) -> str:
    """The copy that an ingest goes on with, or the file where nothing was taken out."""
    head = read_head(Path(path))
    folder = Path(out_dir) / "clean"
    folder.mkdir(exist_ok=True)
    if is_dicom_slide(head) or is_dicom_video(head) or is_zip(head):
        multi_file.deidentify(path=path, out_dir=str(folder), key="00")
    else:
        single_file.deidentify(path=path, out_dir=str(folder))
    clean = folder / CLEAN_NAME
    return str(clean) if clean.exists() else path


def _tiles(path: Path) -> int:
    unserved = 0
    with TileSource(path) as source:
        for number, level in enumerate(source.levels):
            columns = -(-level.width_px // level.tile_width_px)
            rows = -(-level.height_px // level.tile_height_px)
            count = columns * rows
            for at in range(0, count, max(1, count // _TILES)):
                try:
                    source.tile(number, at % columns, at // columns)
                except MlError:
                    unserved += 1
    return unserved


def _frames(path: str, table: Path) -> int:
    unserved = 0
    stored = load_frame_table(table)
    times = stored.pts.tolist()
    for pts in times[:: max(1, len(times) // _FRAMES)]:
        try:
            read_frame(path, int(pts), table=stored)
        except MlError:
            unserved += 1
    return unserved
