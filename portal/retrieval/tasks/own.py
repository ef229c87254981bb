"""A lab's own encoders that read pixels: loaded, and used on what the common one has embedded."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import OperationalError

from ml.errors import BadInputError, CancelledError, MlError, WeightsError
from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import OWN_KIND
from portal.retrieval.services import OwnVectors
from portal.retrieval.tasks.ending import has_ended
from portal.retrieval.tasks.regions import regions_open

if TYPE_CHECKING:
    from ml.roi import Embedded, RegionEncoder

PART = 32  # regions: seconds of two cores, after which others have their turn


def own_network(encoder: Encoder) -> RegionEncoder:
    """The network of a lab's own encoder.

    Raises:
        WeightsError: its weights are gone or damaged.
    """
    return _network(encoder.pk)


@lru_cache(maxsize=4)  # labs at work at once; tens of megabytes each
def _network(encoder_id: uuid.UUID) -> RegionEncoder:
    """Weights never change: what is trained again is another encoder."""
    from ml.roi import encoder_of_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.safetensors"
        path.write_bytes(selectors.own_weights(encoder_id))
        return encoder_of_file(path)


def own_vectors(context: JobContext, roi: Roi, base: Encoder) -> OwnVectors:
    """What a lab's own encoders make of an ROI, so that searches by them find it at once.

    Those that fail are left to the job that embeds what lacks a vector.
    """
    found: OwnVectors = {}
    for own in selectors.encoders_to_keep_up(base, roi.lab_id):
        if not own.is_trained:
            continue
        try:
            network = own_network(own)
        except WeightsError:  # its job says so
            continue
        tell = partial(context.progress, 0, 0, "embedding with the lab's own encoder")
        (one,) = _embedded(network, [roi], tell)
        if not isinstance(one, MlError | OSError):
            found = {**found, own.pk: (one.vector, one.n_patches)}
    return found


def _embedded(
    network: RegionEncoder, rois: Sequence[Roi], tell: Callable[[], None]
) -> Sequence[Embedded | MlError | OSError]:
    """Of ROIs of one canvas; of each the error where its file cannot be read."""
    try:
        with regions_open(network, rois[0].canvas) as embed:
            return embed(rois, lambda *_: tell())
    except CancelledError:
        raise
    except (MlError, FileNotFoundError) as error:
        return [error for _ in rois]


@task(
    OWN_KIND,
    queue="gpu",
    title="Embed the archive with what was learned",
    priority=Priority.BULK,
    retry_on=(OSError, OperationalError),
)
def encoder_embed(context: JobContext, *, encoder_id: str) -> JobResult:
    """Embed what a lab's own encoder has no vector of, then let the lab's searches use it.

    A part lasts once it is written: killed or stopped in between, the next attempt does the rest.
    """
    encoder = own_wanted(encoder_id)
    done = 0
    try:
        network = own_network(encoder) if encoder else None
    except WeightsError as error:
        raise UserError(f"{encoder}: {error}.", code=error.code) from error
    while encoder is not None and network is not None:
        before, total = selectors.map_progress(encoder)
        tell = partial(context.progress, before, total, "embedding regions")
        tell()
        rois = selectors.rois_to_own(encoder, PART)
        if rois:
            done += _part(context, encoder, rois, _embedded(network, rois, tell))
            context.give_way()
        elif has_ended(context, partial(services.metric_switch, encoder)):
            return {"regions": done}
        encoder = own_wanted(encoder_id)
    return {"skipped": "no longer wanted"}


def _part(
    context: JobContext,
    encoder: Encoder,
    rois: Sequence[Roi],
    found: Sequence[Embedded | MlError | OSError],
) -> int:
    with context.part():
        if not services.is_picture_of(rois[0].canvas, lock=False):
            return 0
        for roi, one in zip(rois, found, strict=True):
            services.own_save(encoder=encoder, roi=roi, found=one)
    return sum(not isinstance(one, BadInputError) for one in found)


def own_wanted(encoder_id: str) -> Encoder | None:
    """None if it was rolled back, or went with its lab."""
    try:
        encoder = selectors.encoder_get(uuid.UUID(encoder_id))
    except NotFoundError:
        return None
    is_used = encoder.is_default and encoder.is_trained  # it may have regions to catch up with
    return encoder if encoder.is_next or is_used else None
