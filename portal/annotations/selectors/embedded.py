"""Which ROIs can be searched with; a higher app registers how to know."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection

EmbeddedProbe = Callable[[Collection[uuid.UUID]], set[uuid.UUID]]
_embedded_probes: list[EmbeddedProbe] = []


def embedded_probe_register(probe: EmbeddedProbe) -> None:
    """Let a higher app say which ROIs have an embedding of their present version.

    Call from ``AppConfig.ready``. The probe gets ROI ids and returns those that are embedded; it is
    asked once for a whole page of ROIs.
    """
    if probe not in _embedded_probes:
        _embedded_probes.append(probe)


def rois_embedded(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the ROIs that can be searched with right now."""
    found: set[uuid.UUID] = set()
    if roi_ids:
        for probe in _embedded_probes:
            found |= probe(roi_ids)
    return found
