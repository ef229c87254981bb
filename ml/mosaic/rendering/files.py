"""Stage 7, write: pyramid and preview of a component, and the whole folder, all or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.slides.pyramids import write_pyramid
from ml.mosaic.config import MosaicConfig
from ml.mosaic.result import MANIFEST_NAME, component_name
from ml.types import ImageU8

PREVIEW_QUALITY = 88
"""JPEG quality at which blocks do not show at the preview's size."""

IMAGE_PATTERNS = ("mosaic*.tif", "preview*.jpg", "layer-*.png", "layer-*.tif")


def write_images(pixels: ImageU8, folder: Path, *, component: int, config: MosaicConfig) -> None:
    """Write the pyramidal TIFF and the preview into ``folder``."""
    pyramid = folder / component_name("mosaic", ".tif", component)
    write_pyramid(pixels, pyramid, quality=config.quality)
    height, width = pixels.shape[:2]
    scale = min(1.0, config.preview_px / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.asarray(pixels), size, interpolation=cv2.INTER_AREA)
    options = [cv2.IMWRITE_JPEG_QUALITY, PREVIEW_QUALITY]
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), options)
    (folder / component_name("preview", ".jpg", component)).write_bytes(data.tobytes())


def publish(folder: Path, out_dir: Path) -> None:
    """Move a finished folder to ``out_dir`` by renames, the manifest last.

    Files of an earlier build in ``out_dir`` stay until the new ones replace them; a reader that
    sees the new manifest sees the new images. Images of an earlier build that the new one lacks
    are removed at the end.
    """
    folder.chmod(0o755)
    if not out_dir.exists():
        folder.replace(out_dir)
        return
    new = sorted(path.name for path in folder.iterdir() if path.name != MANIFEST_NAME)
    for name in (*new, MANIFEST_NAME):
        (folder / name).replace(out_dir / name)
    for pattern in IMAGE_PATTERNS:
        for path in out_dir.glob(pattern):
            if path.name not in new:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
