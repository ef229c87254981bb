"""ROIs that can be searched with; the embeddings app registers the probe."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection

from portal.core.registry import Registry

EmbeddedProbe = Callable[[Collection[uuid.UUID]], set[uuid.UUID]]
EMBEDDED_PROBES: Registry[str, EmbeddedProbe] = Registry()
"""Return which of the given ROIs have an embedding of their present version. Called once a page."""


def rois_embedded(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Ids of the ROIs that can be searched with now."""
    embedded: set[uuid.UUID] = set()
    if roi_ids:
        for _, probe in EMBEDDED_PROBES.items():
            embedded |= probe(roi_ids)
    return embedded
