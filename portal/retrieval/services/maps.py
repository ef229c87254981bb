"""Writes of maps: asked for by a person, drawn by a job; labels that are found right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.db import transaction

from ml.index.maps import Pairs
from ml.types import ArrayF32, ArrayI64
from portal.annotations.models import Roi
from portal.annotations.rules import require_annotate
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import EncoderKind, LabelConfirmation, RegionMap
from portal.retrieval.selectors.browse import (
    MAP_KIND,
    MapSource,
    has_regions_to_map,
    map_job_open,
)

MAPS_KEPT = 3  # of a lab and encoder: pages that show an older one go on with it for a while
_SIDE = 65_535  # of the plane: as fine as uint16, finer than any screen


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the job found: see ``ml.index.maps``.

    Attributes:
        places: (N, 2) in 0 to 1. laid_out: rows that made the plane.
        neighbours, distances: (N, k), of other patients.
        across, within: pairs of two cases and of one.
    """

    places: ArrayF32
    laid_out: int
    neighbours: ArrayI64
    distances: ArrayF32
    across: Pairs
    within: Pairs
    radius: float
    is_calibrated: bool
    seconds: float


def map_draw(*, lab: Lab, kind: EncoderKind, user: User) -> Job:
    """Submit the job that draws a lab's regions anew, or give the one under way.

    Raises:
        ForbiddenError: less than an annotator of the lab.
        ConflictError: no region that the person may see is embedded yet.
    """
    require_role(user, lab.pk, at_least=Role.ANNOTATOR)
    encoder = selectors.encoder_default(kind)
    if encoder is None or not has_regions_to_map(user, lab_id=lab.pk, encoder=encoder):
        raise ConflictError("No region of this kind is embedded yet.", code="nothing-embedded")
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # two who ask at once get one job
        known = map_job_open(lab_id=lab.pk, encoder_id=encoder.pk)
        if known is not None:
            return known
        return job_submit(
            kind=MAP_KIND,
            args={"lab_id": str(lab.pk), "encoder_id": str(encoder.pk)},
            lab=lab,
            user=user,
            target_name=f"Map of {lab.name}"[:200],
        )


def map_save(*, scope: Scope, source: MapSource, drawn: Drawn) -> RegionMap:
    """Keep a map, and no more than ``MAPS_KEPT``. Inside ``effect()``."""
    pairs = np.concatenate([drawn.across.rows, drawn.within.rows])
    apart = np.concatenate([drawn.across.distance, drawn.within.distance])
    made: RegionMap = RegionMap.objects.create(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        last_embedding_id=int(source.ids[-1]) if len(source.ids) else 0,
        left_out=source.left_out,
        laid_out=drawn.laid_out,
        radius=drawn.radius,
        is_calibrated=drawn.is_calibrated,
        seconds=drawn.seconds,
        ids=source.ids.astype("<i8").tobytes(),
        places=np.round(drawn.places * _SIDE).astype("<u2").tobytes(),
        neighbours=drawn.neighbours.astype("<i4").tobytes(),
        distances=drawn.distances.astype("<f4").tobytes(),
        pairs=pairs.astype("<i4").tobytes(),
        pair_distances=apart.astype("<f4").tobytes(),
        pairs_cut=drawn.across.is_cut or drawn.within.is_cut,
    )
    own = RegionMap.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    older = own.order_by("-created_at", "-pk").values_list("pk", flat=True)[MAPS_KEPT:]
    RegionMap.objects.filter(pk__in=list(older)).delete()
    return made


def label_confirm(*, roi: Roi, user: User) -> LabelConfirmation:
    """Say that a region's label is right, however unlike it the region looks.

    Raises:
        ForbiddenError: less than an annotator of the ROI's lab.
        ConflictError: it is deleted. InvalidInputError: it has no label.
    """
    require_annotate(user, roi.lab_id)
    if roi.deleted_at is not None:
        raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")
    if roi.label_id is None:
        raise InvalidInputError("This ROI has no label.", code="no-label")
    found, _ = LabelConfirmation.objects.get_or_create(
        roi=roi, label_id=roi.label_id, lab_id=roi.lab_id, defaults={"user": user}
    )
    return found


def label_confirmation_clear(*, roi: Roi, user: User) -> None:
    """Withdraw a confirmation; nothing happens where there is none."""
    require_annotate(user, roi.lab_id)
    LabelConfirmation.objects.filter(roi=roi, lab_id=roi.lab_id).delete()
