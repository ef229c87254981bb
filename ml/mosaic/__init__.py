"""From a shaky video to one map: every frame keeps its transform, status and reason."""

from __future__ import annotations

from ml.mosaic.build import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.followup import Candidate, FollowupConfig, PlaceHit, draw_hit, find_place
from ml.mosaic.manifest import read_manifest
from ml.mosaic.result import ComponentResult, FrameResult, MosaicResult
from ml.mosaic.spans import NothingRegisteredError
from ml.mosaic.tracking import Track, TrackConfig, TrackedOutline, key_outlines, track_outline

__all__ = [
    "Candidate",
    "ComponentResult",
    "FollowupConfig",
    "FrameResult",
    "MosaicConfig",
    "MosaicResult",
    "NothingRegisteredError",
    "PlaceHit",
    "Track",
    "TrackConfig",
    "TrackedOutline",
    "build_mosaic",
    "draw_hit",
    "find_place",
    "key_outlines",
    "read_manifest",
    "track_outline",
]
