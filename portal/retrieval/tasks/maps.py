"""A lab's regions laid out on a plane, with what the page beside it needs."""

from __future__ import annotations

import time
import uuid

from ml.index.maps import LayoutConfig, lay_out, neighbours_elsewhere, pairs_within
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.selectors.browse import MAP_KIND, MapSource, duplicate_radius, map_source
from portal.retrieval.services.maps import Drawn

NEIGHBOURS = 15  # of other patients, as many as the graph of the layout has
PAIRS_MOST = 5_000  # of each kind: nobody goes through more by hand, and it bounds the row


@task(MAP_KIND, title="Draw the map", priority=Priority.BULK, retry_on=(OSError,))
def map_draw(context: JobContext, *, lab_id: str, encoder_id: str) -> JobResult:
    """Draw all regions of a lab that an encoder embedded, up to the most that a map holds.

    The job does not say how many those are: some may be hidden from whoever sees it.
    """
    try:
        encoder = selectors.encoder_get(uuid.UUID(encoder_id))
    except NotFoundError as error:
        raise UserError("The encoder no longer exists.", code="encoder-gone") from error
    scope = Scope(encoder, uuid.UUID(lab_id))
    context.progress(0, 100, "reading")
    source = map_source(scope)
    drawn = _drawn(context, scope, source)
    with context.effect():
        made = services.map_save(scope=scope, source=source, drawn=drawn)
    return {"map": str(made.pk)}


def _drawn(context: JobContext, scope: Scope, source: MapSource) -> Drawn:
    began = time.monotonic()
    config = LayoutConfig()
    radius, is_calibrated = duplicate_radius(scope, len(source.ids))
    places = lay_out(source.vectors, config, context.progress)
    near, distances = neighbours_elsewhere(
        source.vectors, source.patients, NEIGHBOURS, context.progress
    )
    across, within = pairs_within(
        source.vectors, source.cases, radius, most=PAIRS_MOST, progress=context.progress
    )
    return Drawn(
        places,
        min(len(source.ids), config.laid_out),
        near,
        distances,
        across,
        within,
        radius,
        is_calibrated,
        time.monotonic() - began,
    )
