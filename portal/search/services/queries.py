"""Create, mark, embed and delete queries other than ROIs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.utils import timezone

from ml.types import ArrayF32
from portal.annotations.geometry import shape_from_geojson
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeInputError
from portal.embeddings.models import Encoder
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.search.models import EMBEDDED_SOURCES, Query, QuerySource, Report
from portal.search.selectors.queries import QUERY_KIND, query_get, query_job
from portal.search.selectors.similar_cases import MAX_EXAMPLES

PICTURE_BYTES = 24 * 2**20  # a TIFF of 20 megapixels; fits base64-encoded into an API request
QUERY_DAYS = 30  # URLs may be shared with colleagues
SCALES = (0.25, 4.0)  # at four times, a nucleus is as large as a gland
_MPP = (0.05, 100.0)  # from finer than any scanner to coarser than any useful picture

_COPIED = (
    *("lab", "source", "kind", "canvas", "geometry", "frame_pts", "mpp", "upload", "picture"),
    *("picture_mpp", "width_px", "height_px", "liked", "unliked"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryData:
    """Request for a query; fields that its source does not need stay empty.

    Attributes:
        canvas_id: Canvas of an area, a frame, or a whole slide.
        geometry: GeoJSON polygon of an area.
        roi_id: ROI whose outline is the area, instead of canvas and geometry.
        repeat_of: Query to repeat at another scale; all other fields are ignored.
        frame_pts: Frame of a video, for a frame or an area on it.
        upload, kind, mpp, lab: A picture's bytes, encoder kind, microns per pixel, and lab.
        scale: Look for the same structures this many times as large.
        liked, unliked: ROIs of one lab.
    """

    source: QuerySource
    canvas_id: uuid.UUID | None = None
    geometry: object = None
    roi_id: uuid.UUID | None = None
    repeat_of: uuid.UUID | None = None
    frame_pts: int | None = None
    upload: bytes = b""
    kind: str = ""
    mpp: float | None = None
    lab: Lab | None = None
    scale: float = 1.0
    liked: tuple[uuid.UUID, ...] = ()
    unliked: tuple[uuid.UUID, ...] = ()


def query_create(*, data: QueryData, user: User) -> Query:
    """Store a query and submit its embedding if it has pixels of its own.

    Raises:
        NotFoundError: The canvas or an example is not of the person's labs.
        InvalidInputError: A field that the source needs is missing or invalid.
        TooLargeInputError: The picture exceeds ``PICTURE_BYTES``.
    """
    if not SCALES[0] <= data.scale <= SCALES[1]:
        raise InvalidInputError(f"scale: from {SCALES[0]:g} to {SCALES[1]:g}.")
    query = _copy_of(data.repeat_of, user) if data.repeat_of else _new(data, user)
    query.user, query.scale = user, data.scale
    if data.scale != 1 and (
        query.kind != Modality.HISTOLOGY or query.source not in EMBEDDED_SOURCES
    ):
        raise InvalidInputError("scale: only for the pixels of a slide or a picture of tissue.")
    require_role(user, query.lab_id, at_least=Role.VIEWER)
    with transaction.atomic():
        query.save()
        if query.source in EMBEDDED_SOURCES:
            _submit(query)
    return query


def query_mark(*, query: Query, other_id: uuid.UUID, verdict: str, user: User) -> None:
    """Make a hit an example of a query: "alike", "unlike", or none ("").

    Raises:
        ForbiddenError: The query is another person's, and the user is not a manager.
        NotFoundError: No such ROI.
        ConflictError: Too many examples, or a query of examples without a liked one.
    """
    if query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.MANAGER)
    (other,) = _rois(user, [other_id])
    if other.lab_id != query.lab_id:
        raise NotFoundError("There is no such region in this lab.")
    with transaction.atomic():
        row = Query.objects.select_for_update().defer("upload", "picture").get(pk=query.pk)
        key = str(other_id)
        row.liked = [marked for marked in row.liked if marked != key]
        row.unliked = [marked for marked in row.unliked if marked != key]
        if verdict:
            (row.liked if verdict == "alike" else row.unliked).append(key)
        if row.source == QuerySource.EXAMPLES and not row.liked:
            raise ConflictError(
                "A query of examples needs at least one region that hits should be like."
            )
        if max(len(row.liked), len(row.unliked)) > MAX_EXAMPLES:
            raise ConflictError(
                f"A search takes at most {MAX_EXAMPLES} regions that hits should be like, and as "
                "many that they should not be like."
            )
        row.save(update_fields=["liked", "unliked", "updated_at"])
    query.liked, query.unliked = row.liked, row.unliked


def query_remove(*, query: Query, user: User) -> None:
    """Delete a query with its picture; allowed to its author and to managers."""
    if query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.MANAGER)
    Query.all_objects.filter(pk=query.pk).delete()


def queries_sweep() -> int:
    """Delete queries older than ``QUERY_DAYS`` and return their number.

    Queries of a report are deleted with it, so that it can be repeated.
    """
    old = Query.all_objects.filter(created_at__lt=timezone.now() - timedelta(days=QUERY_DAYS))
    old = old.exclude(pk__in=Report.all_objects.exclude(query=None).order_by().values("query"))
    return old.delete()[1].get(Query._meta.label, 0)


def query_embed_request(*, query: Query, user: User, is_retry: bool = False) -> Job:
    """Return the unfinished job that embeds a query, or submit one.

    Args:
        is_retry: Start again after a failure; for another person's query as an annotator.
    Raises:
        ConflictError: The last attempt failed (``details``: job and reason).
        ForbiddenError: A viewer's retry of another person's query.
    """
    if is_retry and query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.ANNOTATOR)
    job = query_job(query)
    if job is not None and not job.has_ended:
        return job
    if job is not None and job.state != JobState.SUCCEEDED and not is_retry:
        raise ConflictError(
            f"There is nothing to search with: {job.error_message}",
            code="embedding-failed",
            details={"job": str(job.pk), "reason": job.error_code},
        )
    return _submit(query)


def query_embedded_save(
    *,
    query_id: uuid.UUID,
    encoder: Encoder,
    vector: ArrayF32,
    picture: bytes | None = None,
    picture_mpp: float | None = None,
    size_px: tuple[int, int] = (0, 0),
) -> None:
    """Store the vector; the JPEG of a picture replaces the upload. Call inside ``effect()``.

    Args:
        picture: None if there is none, or it is stored already.
    """
    fields: dict[str, object] = {
        "encoder": encoder,
        "vector": np.ascontiguousarray(vector, dtype="<f4").tobytes(),
        "upload": None,
    }
    if picture is not None:
        fields |= {"picture": picture, "picture_mpp": picture_mpp}
        fields |= {"width_px": size_px[0], "height_px": size_px[1]}
    Query.all_objects.filter(pk=query_id).update(**fields)


def _submit(query: Query) -> Job:
    return job_submit(
        kind=QUERY_KIND,
        args={"query_id": str(query.pk)},
        lab=query.lab,
        user=query.user,
        target=query,
        target_name=str(query),
    )


def _new(data: QueryData, user: User) -> Query:
    liked, unliked, lab_id = _examples(user, data)
    if data.source == QuerySource.PICTURE:
        query = _query_of_picture(data)
    elif data.source == QuerySource.EXAMPLES:
        query = _query_of_examples(data, liked)
    elif data.source == QuerySource.AREA and data.roi_id:
        query = _query_of_roi(data.roi_id, user)
    else:
        query = _query_of_canvas(data, user)
    if lab_id not in (None, query.lab_id):
        raise NotFoundError("There is no such region in this lab.")
    query.source = data.source
    query.liked = [str(roi.pk) for roi in liked]
    query.unliked = [str(roi.pk) for roi in unliked]
    return query


def _copy_of(query_id: uuid.UUID, user: User) -> Query:
    """Copy of a query without its vector."""
    original = query_get(user, query_id)
    copied = {name: getattr(original, name) for name in _COPIED}
    if original.canvas is not None:
        copied["kind"] = original.canvas.modality  # it may have changed since
    return Query(**copied)


def _query_of_roi(roi_id: uuid.UUID, user: User) -> Query:
    (roi,) = _rois(user, [roi_id])
    kind = roi.canvas.modality
    if roi.shape in MARKS:
        raise InvalidInputError("roi: points and lines have no area to search with.")
    return Query(
        lab=roi.lab, canvas=roi.canvas, kind=kind, geometry=roi.geometry, frame_pts=roi.frame_pts
    )


def _query_of_picture(data: QueryData) -> Query:
    if not data.upload:
        raise InvalidInputError("picture: choose a file.")
    if len(data.upload) > PICTURE_BYTES:
        raise TooLargeInputError(
            f"picture: at most {PICTURE_BYTES // 2**20} MiB.", details={"limit": PICTURE_BYTES}
        )
    if data.kind not in Modality.values:
        raise InvalidInputError(f"kind: one of {', '.join(Modality.values)}.")
    if data.lab is None:
        raise InvalidInputError("lab: choose the lab to search in.")
    if data.kind == Modality.HISTOLOGY and data.mpp is None:
        raise InvalidInputError("mpp: enter how many microns wide a pixel of the picture is.")
    if data.mpp is not None and not (math.isfinite(data.mpp) and _MPP[0] <= data.mpp <= _MPP[1]):
        raise InvalidInputError(f"mpp: from {_MPP[0]:g} to {_MPP[1]:g} microns per pixel.")
    return Query(lab=data.lab, kind=data.kind, mpp=data.mpp, upload=data.upload)


def _query_of_examples(data: QueryData, liked: list[Roi]) -> Query:
    if not liked:
        raise InvalidInputError("liked: give at least one region that hits should be like.")
    kinds = {roi.canvas.modality for roi in liked}
    if len(kinds) > 1:
        raise InvalidInputError(
            "liked: regions of histology cannot be compared with regions of endoscopy."
        )
    return Query(lab=liked[0].lab, kind=kinds.pop())


def _query_of_canvas(data: QueryData, user: User) -> Query:
    canvas = _canvas(user, data.canvas_id)
    is_video = canvas.kind == CanvasKind.VIDEO
    query = Query(lab=canvas.lab, canvas=canvas, kind=canvas.modality)
    if data.source == QuerySource.AREA:
        shape = shape_from_geojson(
            data.geometry, width_px=canvas.width_px, height_px=canvas.height_px
        )
        query.geometry = shape.geometry
    elif data.source == QuerySource.FRAME and not is_video:
        raise InvalidInputError("source: expected a video; only videos have frames.")
    elif data.source in (QuerySource.TISSUE, QuerySource.ROIS) and canvas.kind not in (
        CanvasKind.SLIDE,
        CanvasKind.STILL,
    ):
        raise InvalidInputError("source: this canvas is not a slide.")
    elif data.source == QuerySource.TISSUE and canvas.modality != Modality.HISTOLOGY:
        raise InvalidInputError("source: tissue is found on images of histology only.")
    if is_video and data.frame_pts is None:
        raise InvalidInputError("frame_pts: give the frame of the video.")
    query.frame_pts = data.frame_pts if is_video else None
    return query


def _canvas(user: User, canvas_id: uuid.UUID | None) -> Canvas:
    if canvas_id is None:
        raise InvalidInputError("canvas: this is required.")
    rows = Canvas.objects.owned_by(user).select_related("lab", "case")
    canvas = rows.filter(pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such canvas.")
    return canvas


def _examples(user: User, data: QueryData) -> tuple[list[Roi], list[Roi], uuid.UUID | None]:
    """Visible example ROIs and their lab; None without examples."""
    if max(len(data.liked), len(data.unliked)) > MAX_EXAMPLES:
        raise InvalidInputError(f"liked, unliked: at most {MAX_EXAMPLES} regions each.")
    if set(data.liked) & set(data.unliked):
        raise InvalidInputError("liked, unliked: a region can be in only one of the two.")
    liked, unliked = _rois(user, data.liked), _rois(user, data.unliked)
    labs = {roi.lab_id for roi in (*liked, *unliked)}
    if len(labs) > 1:
        raise InvalidInputError("liked, unliked: expected regions of one lab.")
    return liked, unliked, next(iter(labs), None)


def _rois(user: User, keys: Collection[uuid.UUID]) -> list[Roi]:
    rows = Roi.objects.owned_by(user).filter(pk__in=keys, deleted_at__isnull=True)
    by_id = {roi.pk: roi for roi in rows.select_related("canvas", "lab")}
    if set(keys) - set(by_id):
        raise NotFoundError("There is no such region.")
    return [by_id[key] for key in dict.fromkeys(keys)]
