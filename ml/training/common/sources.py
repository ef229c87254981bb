"""Source files of a training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ml.errors import BadInputError

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs", ".ndpi"}


def source_files(sources: Sequence[str], data: Path) -> list[Path]:
    """Files of a training, with folders expanded in name order.

    Args:
        sources: files or folders, relative to ``data``.
    Raises:
        BadInputError: a source is not there, or there is none.
    """
    files: list[Path] = []
    for source in sources:
        path = data / source
        if path.is_dir():
            files += images_in(path)
        elif path.is_file():
            files.append(path)
        else:
            raise BadInputError(f"source {source!r} is not in the data folder")
    if not files:
        raise BadInputError("no source to train on")
    return files


def images_in(folder: Path) -> list[Path]:
    """Image files of a folder in name order; none if it is not a folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
