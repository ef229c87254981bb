"""ROIs that several jobs wait for, embedded at once: what each job then finds as its ``ahead``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from django.conf import settings

from ml.errors import BadInputError
from portal.annotations.models import Roi
from portal.core.tasks import Ahead, Arguments, JobCancelled, JobContext, LeaseLost
from portal.retrieval import selectors
from portal.retrieval.models import Encoder
from portal.retrieval.tasks.regions import canvases_embed, encoder_ready

if TYPE_CHECKING:
    from ml.roi import Embedded


@dataclass(frozen=True, slots=True)
class EmbeddedAhead:
    """What the encoder found in an outline: a vector, or the error that it alone raised."""

    encoder_id: Any
    geometry: dict[str, Any]
    found: Embedded | BadInputError

    def holds_for(self, roi: Roi, encoder: Encoder) -> bool:
        """False if the outline or the encoder are others by now."""
        return (self.encoder_id, self.geometry) == (encoder.pk, roi.geometry)


def jobs_together() -> int:
    """How many ``roi_embed`` jobs a worker takes at once: as set, or as many as pay."""
    asked: int = settings.TESSERA_EMBED_TOGETHER
    if asked:
        return asked
    from ml.roi import regions_together

    return regions_together()


def encoders_alike(arguments: Sequence[Arguments]) -> list[str | None]:
    """The kind of encoder that each job needs; None if its ROI is gone."""
    ids = [uuid.UUID(str(one["roi_id"])) for one in arguments]
    rois = {roi.pk: roi for roi in selectors.rois_to_embed(ids)}
    return [str(selectors.encoder_kind_for(rois[pk].canvas)) if pk in rois else None for pk in ids]


def embed_ahead(jobs: Sequence[tuple[JobContext, Arguments]]) -> list[EmbeddedAhead | None]:
    """Embed the ROIs of jobs that need the same encoder; None for those left to their own job."""
    ids = [uuid.UUID(str(arguments["roi_id"])) for _, arguments in jobs]
    rois = selectors.rois_to_embed(ids)
    if not rois:
        return [None] * len(jobs)
    network, encoder = encoder_ready(selectors.encoder_kind_for(rois[0].canvas))
    known = selectors.rois_embedded(rois, encoder)
    rois = sorted((roi for roi in rois if roi.pk not in known), key=lambda roi: roi.canvas_id)
    groups = [list(own) for _, own in groupby(rois, key=lambda roi: roi.canvas_id)]
    made: dict[uuid.UUID, EmbeddedAhead] = {}
    results = canvases_embed(network, groups, _Listeners([context for context, _ in jobs]))
    for own, found in zip(groups, results, strict=True):
        for roi, one in zip(own, found, strict=bool(found)):
            made[roi.pk] = EmbeddedAhead(encoder.pk, roi.geometry, one)
    return [made.get(pk) for pk in ids]


class _Listeners:
    """Tells the progress of common work to all its jobs; goes on while one of them wants it."""

    def __init__(self, contexts: Sequence[JobContext]) -> None:
        self._contexts = list(contexts)

    def __call__(self, done: int, total: int, phase: str) -> None:
        for context in tuple(self._contexts):
            try:
                context.progress(done, total, phase)
            except (JobCancelled, LeaseLost):
                self._contexts.remove(context)
        if not self._contexts:
            raise JobCancelled


EMBED_AHEAD = Ahead(most=jobs_together, alike=encoders_alike, work=embed_ahead)
