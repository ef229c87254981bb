"""From a shaky video to one map: every frame keeps its transform, status and reason."""

from __future__ import annotations

from ml.mosaic.build import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.manifest import read_manifest
from ml.mosaic.result import MosaicFrame, MosaicResult

__all__ = ["MosaicConfig", "MosaicFrame", "MosaicResult", "build_mosaic", "read_manifest"]
