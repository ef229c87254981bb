"""Writes of queries: what is searched with that is not an ROI."""

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
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeInputError
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import (
    EMBEDDED_SOURCES,
    Encoder,
    EncoderKind,
    Query,
    QuerySource,
    Report,
)
from portal.retrieval.selectors import EXAMPLES_MOST, QUERY_KIND

PICTURE_BYTES = 24 * 2**20  # a still of 20 megapixels as TIFF; as base64 within a body of the API
QUERY_DAYS = 30  # an address sent to a colleague is opened within a month
SCALES = (0.25, 4.0)  # beyond four times, a nucleus has become a gland
_MPP = (0.05, 100.0)  # finer than any scanner, coarser than any field of view worth a search

_COPIED = (
    *("lab", "source", "kind", "canvas", "geometry", "frame_pts", "mpp", "upload", "picture"),
    *("picture_mpp", "width_px", "height_px", "liked", "unliked"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAsked:
    """What a person wants to search with; what its source does not need stays empty.

    Attributes:
        canvas_id: of an area, a frame, or a whole slide. geometry: GeoJSON polygon of an area.
        roi_id: whose outline is the area, in the place of both. again_id: a query that is asked
            once more, at another scale; nothing else is looked at.
        frame_pts: of a frame, and of an area on a video.
        upload, kind, mpp, lab: a picture's bytes, what it shows, microns per pixel, whose it is.
        scale: look for the same structures this many times as large.
        liked, unliked: ROIs of one lab.
    """

    source: QuerySource
    canvas_id: uuid.UUID | None = None
    geometry: object = None
    roi_id: uuid.UUID | None = None
    again_id: uuid.UUID | None = None
    frame_pts: int | None = None
    upload: bytes = b""
    kind: str = ""
    mpp: float | None = None
    lab: Lab | None = None
    scale: float = 1.0
    liked: tuple[uuid.UUID, ...] = ()
    unliked: tuple[uuid.UUID, ...] = ()


def query_create(*, asked: QueryAsked, user: User) -> Query:
    """Keep what is searched with, and submit its embedding where it has pixels of its own.

    Raises:
        NotFoundError: the canvas or an example is of none of this person's labs.
        InvalidInputError: something that the source needs is missing or wrong.
        TooLargeInputError: a picture beyond ``PICTURE_BYTES``.
    """
    if not SCALES[0] <= asked.scale <= SCALES[1]:
        raise InvalidInputError(f"scale: from {SCALES[0]:g} to {SCALES[1]:g}.")
    query = _again(asked.again_id, user) if asked.again_id else _new(asked, user)
    query.user, query.scale = user, asked.scale
    if asked.scale != 1 and (
        query.kind != EncoderKind.HISTOLOGY or query.source not in EMBEDDED_SOURCES
    ):
        raise InvalidInputError("scale: only for the pixels of a slide or a picture of tissue.")
    require_role(user, query.lab_id, at_least=Role.VIEWER)
    with transaction.atomic():
        query.save()
        if query.source in EMBEDDED_SOURCES:
            _submit(query)
    return query


def query_mark(*, query: Query, other_id: uuid.UUID, verdict: str, user: User) -> None:
    """Make a hit an example of a query: "alike", "unlike", or no longer one ("").

    Raises:
        ForbiddenError: somebody else's query, unless by a manager. NotFoundError: no such ROI.
        ConflictError: too many for a search, or a query of examples would have none liked.
    """
    if query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.MANAGER)
    (other,) = _rois(user, [other_id])
    if other.lab_id != query.lab_id:
        raise NotFoundError("There is no such ROI in this lab.")
    with transaction.atomic():
        row = Query.objects.select_for_update().defer("upload", "picture").get(pk=query.pk)
        key = str(other_id)
        row.liked = [one for one in row.liked if one != key]
        row.unliked = [one for one in row.unliked if one != key]
        if verdict:
            (row.liked if verdict == "alike" else row.unliked).append(key)
        if row.source == QuerySource.EXAMPLES and not row.liked:
            raise ConflictError(
                "A query of examples needs at least one region that hits should be like."
            )
        if max(len(row.liked), len(row.unliked)) > EXAMPLES_MOST:
            raise ConflictError(
                f"A search takes at most {EXAMPLES_MOST} regions that hits should be like, and as "
                "many that they should not be like."
            )
        row.save(update_fields=["liked", "unliked", "updated_at"])
    query.liked, query.unliked = row.liked, row.unliked


def query_remove(*, query: Query, user: User) -> None:
    """Remove a query with its picture: its person may, or a manager of its lab."""
    if query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.MANAGER)
    Query.everything.filter(pk=query.pk).delete()


def queries_sweep() -> int:
    """Remove queries older than ``QUERY_DAYS``; returns how many there were.

    What a report was made with is kept as long as the report, so that it can be asked again.
    """
    old = Query.everything.filter(created_at__lt=timezone.now() - timedelta(days=QUERY_DAYS))
    old = old.exclude(pk__in=Report.everything.exclude(query=None).order_by().values("query"))
    return old.delete()[1].get(Query._meta.label, 0)


def query_embed_request(*, query: Query, user: User, is_retry: bool = False) -> Job:
    """The job that embeds a query: the one under way, or a new one where its vector is gone.

    Args:
        is_retry: start again after a failure; of somebody else's query, as an annotator.
    Raises:
        ConflictError: the last attempt failed (``details``: job and reason).
        ForbiddenError: a viewer's retry of somebody else's query.
    """
    if is_retry and query.user_id != user.pk:
        require_role(user, query.lab_id, at_least=Role.ANNOTATOR)
    job = selectors.query_job(query)
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
    """Keep the vector; of a picture its JPEG takes the place of what was sent. Inside ``effect()``.

    Args:
        picture: None if there was none, or where it is kept already.
    """
    fields: dict[str, object] = {
        "encoder": encoder,
        "vector": np.ascontiguousarray(vector, dtype="<f4").tobytes(),
        "upload": None,
    }
    if picture is not None:
        fields |= {"picture": picture, "picture_mpp": picture_mpp}
        fields |= {"width_px": size_px[0], "height_px": size_px[1]}
    Query.everything.filter(pk=query_id).update(**fields)


def _submit(query: Query) -> Job:
    return job_submit(
        kind=QUERY_KIND,
        args={"query_id": str(query.pk)},
        lab=query.lab,
        user=query.user,
        target=query,
        target_name=str(query),
    )


def _new(asked: QueryAsked, user: User) -> Query:
    liked, unliked, lab_id = _examples(user, asked)
    if asked.source == QuerySource.PICTURE:
        query = _of_picture(asked)
    elif asked.source == QuerySource.EXAMPLES:
        query = _of_examples(asked, liked)
    elif asked.source == QuerySource.AREA and asked.roi_id:
        query = _of_roi(asked.roi_id, user)
    else:
        query = _of_canvas(asked, user)
    if lab_id not in (None, query.lab_id):
        raise NotFoundError("There is no such ROI in this lab.")
    query.source = asked.source
    query.liked = [str(roi.pk) for roi in liked]
    query.unliked = [str(roi.pk) for roi in unliked]
    return query


def _again(query_id: uuid.UUID, user: User) -> Query:
    """A copy that has no vector yet."""
    known = selectors.query_get(user, query_id)
    copied = {name: getattr(known, name) for name in _COPIED}
    return Query(**copied)


def _of_roi(roi_id: uuid.UUID, user: User) -> Query:
    (roi,) = _rois(user, [roi_id])
    kind = selectors.encoder_kind_for(roi.canvas)
    if roi.shape in MARKS:
        raise InvalidInputError("roi: points and lines have no area to search with.")
    return Query(
        lab=roi.lab, canvas=roi.canvas, kind=kind, geometry=roi.geometry, frame_pts=roi.frame_pts
    )


def _of_picture(asked: QueryAsked) -> Query:
    if not asked.upload:
        raise InvalidInputError("picture: choose a file.")
    if len(asked.upload) > PICTURE_BYTES:
        raise TooLargeInputError(
            f"picture: at most {PICTURE_BYTES // 2**20} MiB.", details={"limit": PICTURE_BYTES}
        )
    if asked.kind not in EncoderKind.values:
        raise InvalidInputError(f"kind: one of {', '.join(EncoderKind.values)}.")
    if asked.lab is None:
        raise InvalidInputError("lab: choose the lab to search in.")
    if asked.kind == EncoderKind.HISTOLOGY and asked.mpp is None:
        raise InvalidInputError("mpp: enter how many microns wide a pixel of the picture is.")
    if asked.mpp is not None and not (math.isfinite(asked.mpp) and _MPP[0] <= asked.mpp <= _MPP[1]):
        raise InvalidInputError(f"mpp: from {_MPP[0]:g} to {_MPP[1]:g} microns per pixel.")
    return Query(lab=asked.lab, kind=asked.kind, mpp=asked.mpp, upload=asked.upload)


def _of_examples(asked: QueryAsked, liked: list[Roi]) -> Query:
    if not liked:
        raise InvalidInputError("liked: give at least one ROI that hits should be like.")
    kinds = {selectors.encoder_kind_for(roi.canvas) for roi in liked}
    if len(kinds) > 1:
        raise InvalidInputError("liked: ROIs of slides cannot be compared with ROIs of videos.")
    return Query(lab=liked[0].lab, kind=kinds.pop())


def _of_canvas(asked: QueryAsked, user: User) -> Query:
    canvas = _canvas(user, asked.canvas_id)
    is_video = canvas.kind == CanvasKind.VIDEO
    query = Query(lab=canvas.lab, canvas=canvas, kind=selectors.encoder_kind_for(canvas))
    if asked.source == QuerySource.AREA:
        shape = shape_from_geojson(
            asked.geometry, width_px=canvas.width_px, height_px=canvas.height_px
        )
        query.geometry = shape.geometry
    elif asked.source == QuerySource.FRAME and not is_video:
        raise InvalidInputError("source: expected a video; only videos have frames.")
    elif asked.source in (QuerySource.TISSUE, QuerySource.ROIS) and canvas.kind not in (
        CanvasKind.SLIDE,
        CanvasKind.STILL,
    ):
        raise InvalidInputError("source: this canvas is not a slide.")
    if is_video and asked.frame_pts is None:
        raise InvalidInputError("frame_pts: give the frame of the video.")
    query.frame_pts = asked.frame_pts if is_video else None
    return query


def _canvas(user: User, canvas_id: uuid.UUID | None) -> Canvas:
    if canvas_id is None:
        raise InvalidInputError("canvas: this is required.")
    rows = Canvas.objects.owned_by(user).select_related("lab", "case")
    canvas = rows.filter(pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such canvas.")
    return canvas


def _examples(user: User, asked: QueryAsked) -> tuple[list[Roi], list[Roi], uuid.UUID | None]:
    """The ROIs named, seen by the person, and their lab; None if none is named."""
    if max(len(asked.liked), len(asked.unliked)) > EXAMPLES_MOST:
        raise InvalidInputError(f"liked, unliked: at most {EXAMPLES_MOST} ROIs each.")
    if set(asked.liked) & set(asked.unliked):
        raise InvalidInputError("liked, unliked: an ROI can be in only one of the two.")
    liked, unliked = _rois(user, asked.liked), _rois(user, asked.unliked)
    labs = {roi.lab_id for roi in (*liked, *unliked)}
    if len(labs) > 1:
        raise InvalidInputError("liked, unliked: expected ROIs of one lab.")
    return liked, unliked, next(iter(labs), None)


def _rois(user: User, keys: Collection[uuid.UUID]) -> list[Roi]:
    rows = Roi.objects.owned_by(user).filter(pk__in=keys, deleted_at__isnull=True)
    found = {roi.pk: roi for roi in rows.select_related("canvas", "lab")}
    if set(keys) - set(found):
        raise NotFoundError("There is no such ROI.")
    return [found[key] for key in dict.fromkeys(keys)]
