"""Clips that were written."""

from __future__ import annotations

from pathlib import Path

from portal.archive.models import Canvas
from portal.archive.storage import files as storage

SCHEME = "2"
"""Version of the encoding of clips: raise it when the same frames give another file."""


def clip_path(canvas: Canvas, first: int, last: int) -> Path:
    """Path of the clip of these frames in the cache of the canvas, written or not."""
    version = canvas.content_hash[:12]
    return storage.cache_folder(canvas.pk) / f"clips-{SCHEME}" / f"{version}-{first}-{last}.mp4"
