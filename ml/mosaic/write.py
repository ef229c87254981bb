"""Stage 6, write: pyramid, preview and manifest, all or nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.pyramids import write_pyramid
from ml.mosaic.config import MosaicConfig
from ml.mosaic.manifest import to_manifest
from ml.mosaic.result import MANIFEST_NAME, PREVIEW_NAME, PYRAMID_NAME, MosaicResult
from ml.types import ImageU8

PREVIEW_QUALITY = 88


def write_images(pixels: ImageU8, folder: Path, *, config: MosaicConfig) -> None:
    """Write the pyramidal TIFF and the preview into ``folder``."""
    write_pyramid(pixels, folder / PYRAMID_NAME, quality=config.quality)
    height, width = pixels.shape[:2]
    scale = min(1.0, config.preview_px / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.asarray(pixels), size, interpolation=cv2.INTER_AREA)
    options = [cv2.IMWRITE_JPEG_QUALITY, PREVIEW_QUALITY]
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), options)
    (folder / PREVIEW_NAME).write_bytes(data.tobytes())


def write_manifest(result: MosaicResult, folder: Path) -> None:
    """Write ``mosaic.json``: the same result gives the same bytes."""
    text = json.dumps(to_manifest(result), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST_NAME).write_text(text + "\n")


def publish(folder: Path, out_dir: Path) -> None:
    """Move a finished folder to its place by renames, the manifest last.

    What was in ``out_dir`` before stays whole until the new files take its place; a reader that
    sees the new manifest sees the new images.
    """
    if not out_dir.exists():
        folder.replace(out_dir)
        return
    for name in (PYRAMID_NAME, PREVIEW_NAME, MANIFEST_NAME):
        (folder / name).replace(out_dir / name)
    shutil.rmtree(folder, ignore_errors=True)
