"""Registrations of embeddings with lower apps."""

from __future__ import annotations

from portal.annotations.selectors.embedded import EMBEDDED_PROBES
from portal.embeddings.selectors.embeddings import rois_with_embedding

EMBEDDED_PROBES.register("vectors")(rois_with_embedding)
