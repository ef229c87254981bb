"""Job that lays out a lab's regions on a plane."""

from __future__ import annotations

import time
import uuid

from ml.index.layout.pairs import neighbours_in_other_groups, pairs_within
from ml.index.layout.umap import LayoutConfig, umap_layout
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.embeddings.indexes import Scope
from portal.embeddings.selectors.encoders import encoder_get
from portal.explore.selectors.maps import MAP_KIND, MapSource, duplicate_radius, map_source
from portal.explore.services.maps import MapLayout, map_save

NEIGHBOURS = 15  # of other patients; as in the graph of the layout
MAX_PAIRS = 5_000  # per kind; bounds the row's size


@job_task(MAP_KIND, title="Draw the map", priority=Priority.BULK, retry_on=(OSError,))
def map_draw(context: JobContext, *, lab_id: str, encoder_id: str) -> JobResult:
    """Draw the regions of a lab that an encoder embedded, up to ``MAX_REGIONS``.

    The job does not report their number: some may be hidden from people who see the job.
    """
    try:
        encoder = encoder_get(uuid.UUID(encoder_id))
    except NotFoundError as error:
        raise UserError("The encoder no longer exists.", code="encoder-gone") from error
    scope = Scope(encoder, uuid.UUID(lab_id))
    context.progress(0, 100, "reading")
    source = map_source(scope)
    layout = _layout(context, scope, source)
    with context.effect():
        region_map = map_save(scope=scope, source=source, layout=layout)
    return {"map": str(region_map.pk)}


def _layout(context: JobContext, scope: Scope, source: MapSource) -> MapLayout:
    began = time.monotonic()
    config = LayoutConfig()
    radius, is_calibrated = duplicate_radius(scope, len(source.ids))
    positions = umap_layout(source.vectors, config, context.progress)
    near, distances = neighbours_in_other_groups(
        source.vectors, source.patients, NEIGHBOURS, context.progress
    )
    across, within = pairs_within(
        source.vectors, source.cases, radius, max_pairs=MAX_PAIRS, progress=context.progress
    )
    return MapLayout(
        positions,
        min(len(source.ids), config.max_points),
        near,
        distances,
        across,
        within,
        radius,
        is_calibrated,
        time.monotonic() - began,
    )
