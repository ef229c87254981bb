"""Mosaic reads: requested and finished mosaics, estimates of build times."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Prefetch, Q, QuerySet

from portal.archive.models import Canvas, ItemState, Video
from portal.archive.selectors.frames import frame_table
from portal.archive.selectors.trash import counts_by_entry
from portal.core.errors import InvalidInputError, NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.labs.models import Lab, User
from portal.mosaics.models import Mosaic, MosaicComponent
from portal.mosaics.options import MIN_FRAMES

BUILDS_FOR_RATE = 20
"""The lab's last builds: enough for a steady median, few enough to follow a new machine."""


@dataclass(frozen=True, slots=True)
class SpanFrames:
    """The frames of a span: of the whole video's ``total``, ``first`` to ``last``, inclusive."""

    first_index: int
    last_index: int
    first_pts: int
    last_pts: int
    used: int
    total: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated cost of a build.

    Attributes:
        frames: Number of frames in the span.
        used: Number of these that are used: every step-th.
        seconds: None before this lab has built its first mosaic.
        builds: Number of earlier builds that the rate is measured from.
    """

    frames: int
    used: int
    seconds: float | None
    builds: int

    @property
    def minutes(self) -> int:
        """For people, where seconds would be too fine."""
        return max(1, round((self.seconds or 0) / 60))


def mosaic_list(user: User, *, with_shared: bool = False) -> QuerySet[Mosaic]:
    """The mosaics of the person's labs with their components, oldest first.

    Args:
        with_shared: those of cases that other labs share as well.
    """
    components = MosaicComponent.objects.select_related("canvas").order_by("index")
    mosaics = Mosaic.objects.visible_to(user) if with_shared else Mosaic.objects.owned_by(user)
    return mosaics.select_related("canvas", "video__canvas", "case").prefetch_related(
        Prefetch("components", queryset=components)
    )


def mosaic_search(user: User, *, lab: Lab | None, text: str, state: str) -> QuerySet[Mosaic]:
    """Mosaics of the user's labs and of cases shared with them, newest first.

    Args:
        lab: Restricts to one lab; None for all of them.
        text: In the name, or in accession, procedure or diagnosis of the case; empty for all.
        state: One of ``ItemState``; anything else for all.
    """
    mosaics = Mosaic.objects.visible_to(user).select_related("canvas", "case")
    if lab is not None:
        mosaics = mosaics.filter(lab=lab)
    if state in ItemState.values:
        mosaics = mosaics.filter(state=state)
    for word in text.split():
        mosaics = mosaics.filter(
            Q(name__icontains=word)
            | Q(case__accession__icontains=word)
            | Q(case__procedure__icontains=word)
            | Q(case__diagnosis__icontains=word)
        )
    return mosaics.order_by("-created_at", "-id")


def mosaic_get(user: User, mosaic_id: uuid.UUID) -> Mosaic:
    """A mosaic; ``NotFoundError`` also for another lab's."""
    mosaic = mosaic_list(user, with_shared=True).filter(pk=mosaic_id).first()
    if mosaic is None:
        raise NotFoundError("There is no such mosaic.")
    return mosaic


def mosaic_of_canvas(canvas: Canvas) -> Mosaic | None:
    """Mosaic whose component a canvas shows, if any; the caller has checked the canvas."""
    return Mosaic.objects.select_related("video").filter(components__canvas=canvas).first()


def mosaics_in_trash(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of mosaics of each entry of the trash."""
    return counts_by_entry(Mosaic.all_objects.filter(trash_entry__in=entry_ids))


def mosaic_jobs(mosaics: Iterable[Mosaic], *, user: User) -> dict[uuid.UUID, Job]:
    """The newest job of each, where the person may see jobs; in one query."""
    ids = [mosaic.pk for mosaic in mosaics]
    return job_latest_for(target_type="mosaic", target_ids=ids, user=user)


def span_frames(video: Video, config: Mapping[str, Any]) -> SpanFrames:
    """The frames of a cleaned configuration's span, by the video's frame table.

    Raises:
        InvalidInputError: the span holds fewer than two frames; the message says what there is.
    """
    table = frame_table(video)
    time_s = table.pts * table.time_base_s
    start_s, end_s = config.get("start_s"), config.get("end_s")
    # half a millisecond: seconds are kept to three decimals
    low = 0 if start_s is None else int(np.searchsorted(time_s, start_s - 5e-4))
    high = len(table) if end_s is None else int(np.searchsorted(time_s, end_s + 5e-4, "right"))
    step = config.get("step", 1)
    used = len(range(-(-low // step) * step, high, step))  # every step-th of the whole video
    if used < MIN_FRAMES:
        ends = f"{time_s[0]:.2f} s to {time_s[-1]:.2f} s" if len(table) else "no time at all"
        raise InvalidInputError(
            f"config: the span holds {max(used, 0)} of the video's {len(table)} frames; a mosaic"
            f" needs at least {MIN_FRAMES}. The video has frames from {ends}.",
            code="span-empty",
        )
    return SpanFrames(
        first_index=low,
        last_index=high - 1,
        first_pts=int(table.pts[low]),
        last_pts=int(table.pts[high - 1]),
        used=used,
        total=len(table),
    )


def build_estimate(video: Video, config: Mapping[str, Any]) -> Estimate:
    """Estimate a build by the rate of the lab's last builds.

    The rate is the median of seconds per frame and megapixel.
    """
    span = span_frames(video, config)
    rows = (
        Mosaic.objects.filter(
            lab_id=video.lab_id, state=ItemState.READY, seconds__gt=0, frame_count__gt=0
        )
        .order_by("-updated_at")
        .values_list(
            "seconds", "frame_count", "video__canvas__width_px", "video__canvas__height_px"
        )
    )[:BUILDS_FOR_RATE]
    rates = [s / n / max(w * h, 1) for s, n, w, h in rows if w and h]
    canvas = video.canvas
    seconds = None
    if rates and canvas is not None:
        rate = float(np.median(rates))
        seconds = round(rate * span.used * canvas.width_px * canvas.height_px, 1)
    frames = span.last_index - span.first_index + 1
    return Estimate(frames=frames, used=span.used, seconds=seconds, builds=len(rates))
