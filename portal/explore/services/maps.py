"""Request, store and delete maps; confirm labels."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
from django.db import transaction

from ml.index.layout.pairs import Pairs
from ml.types import ArrayF32, ArrayI64
from portal.annotations.models import Roi
from portal.annotations.rules import require_annotate
from portal.archive.models import Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.embeddings.indexes import Scope
from portal.embeddings.selectors.encoders import encoder_default
from portal.explore.models import LabelConfirmation, RegionMap
from portal.explore.selectors.maps import MAP_KIND, MapSource, has_regions_to_map, map_job_open
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role

MAX_MAPS = 3  # per lab and encoder; open pages may show an older one
_SIDE = 65_535  # side of the plane: range of uint16


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Result of the map job; see ``ml.index.layout``.

    Attributes:
        positions: (N, 2) Coordinates in 0 to 1.
        laid_out: Rows that the layout was fitted to.
        neighbours, distances: (N, k), of other patients.
        across, within: Pairs of different cases and of one case.
    """

    positions: ArrayF32
    laid_out: int
    neighbours: ArrayI64
    distances: ArrayF32
    across: Pairs
    within: Pairs
    radius: float
    is_calibrated: bool
    seconds: float


def map_draw_submit(*, lab: Lab, kind: Modality, user: User) -> Job:
    """Submit the job that draws a map, or return the unfinished one.

    Raises:
        ForbiddenError: The user is less than an annotator of the lab.
        ConflictError: No region that the user may see is embedded yet.
    """
    require_role(user, lab.pk, at_least=Role.ANNOTATOR)
    encoder = encoder_default(kind)
    if encoder is None or not has_regions_to_map(user, lab_id=lab.pk, encoder=encoder):
        raise ConflictError("No region of this kind is embedded yet.", code="nothing-embedded")
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # one job for simultaneous requests
        open_job = map_job_open(lab_id=lab.pk, encoder_id=encoder.pk)
        if open_job is not None:
            return open_job
        return job_submit(
            kind=MAP_KIND,
            args={"lab_id": str(lab.pk), "encoder_id": str(encoder.pk)},
            lab=lab,
            user=user,
            target_name=f"Map of {lab.name}"[:200],
        )


def map_save(*, scope: Scope, source: MapSource, layout: MapLayout) -> RegionMap:
    """Store a map, and delete all but the newest ``MAX_MAPS``. Call inside ``effect()``."""
    pairs = np.concatenate([layout.across.rows, layout.within.rows])
    pair_distances = np.concatenate([layout.across.distance, layout.within.distance])
    region_map: RegionMap = RegionMap.objects.create(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        last_embedding_id=int(source.ids[-1]) if len(source.ids) else 0,
        left_out=source.left_out,
        laid_out=layout.laid_out,
        radius=layout.radius,
        is_calibrated=layout.is_calibrated,
        seconds=layout.seconds,
        ids=source.ids.astype("<i8").tobytes(),
        positions=np.round(layout.positions * _SIDE).astype("<u2").tobytes(),
        neighbours=layout.neighbours.astype("<i4").tobytes(),
        distances=layout.distances.astype("<f4").tobytes(),
        pairs=pairs.astype("<i4").tobytes(),
        pair_distances=pair_distances.astype("<f4").tobytes(),
        pairs_cut=layout.across.is_cut or layout.within.is_cut,
    )
    maps = RegionMap.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    older = maps.order_by("-created_at", "-pk").values_list("pk", flat=True)[MAX_MAPS:]
    RegionMap.objects.filter(pk__in=list(older)).delete()
    return region_map


def maps_delete(*, lab_id: uuid.UUID | None = None) -> None:
    """Delete the maps of a lab, or of all labs. They are redrawn on request."""
    labs = Lab.objects.filter(pk=lab_id) if lab_id else Lab.objects.all()
    RegionMap.objects.filter(lab__in=labs).delete()


def label_confirm(*, roi: Roi, user: User) -> LabelConfirmation:
    """Confirm that a region's label is right.

    Raises:
        ForbiddenError: The user is less than an annotator of the ROI's lab.
        ConflictError: The ROI is deleted.
        InvalidInputError: The ROI has no label.
    """
    require_annotate(user, roi.lab_id)
    if roi.deleted_at is not None:
        raise ConflictError("This region is deleted. Restore it first.", code="roi-deleted")
    if roi.label_id is None:
        raise InvalidInputError("This region has no label.", code="no-label")
    confirmation, _ = LabelConfirmation.objects.get_or_create(
        roi=roi, label_id=roi.label_id, lab_id=roi.lab_id, defaults={"user": user}
    )
    return confirmation


def label_confirmation_clear(*, roi: Roi, user: User) -> None:
    """Delete a confirmation, if there is one."""
    require_annotate(user, roi.lab_id)
    LabelConfirmation.objects.filter(roi=roi, lab_id=roi.lab_id).delete()
