"""Mosaics of endoscopic videos: every frame keeps its transform, status and reason."""

from __future__ import annotations

from ml.mosaic.build import build_mosaic

__all__ = ["build_mosaic"]
