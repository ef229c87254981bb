"""Reads of the archive. Each begins from what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Count, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from portal.archive.models import Canvas, CanvasKind, Case, CaseItem, ItemState, Slide, Video
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.labs.models import Lab, Membership, Role, User

THUMBNAILS_PER_CASE = 4
_Item = TypeVar("_Item", Slide, Video)


@dataclass(frozen=True, slots=True)
class ItemCard:
    """A slide or video with its newest job, as a case's page shows it."""

    item: CaseItem
    kind: str
    job: Job | None


@dataclass(frozen=True, slots=True)
class CaseFacets:
    """The values a person can filter cases by: those that occur."""

    organs: list[str]
    procedures: list[str]
    diagnoses: list[str]
    tags: list[str]


def case_list(*, user: User) -> QuerySet[Case]:
    """The cases this person may see, with counts of what each holds. Newest first."""
    return (
        Case.objects.visible_to(user)
        .select_related("lab")
        .annotate(
            slide_count=_count(Slide.objects.filter(case=OuterRef("pk"))),
            video_count=_count(Video.objects.filter(case=OuterRef("pk"))),
            mosaic_count=_count(Canvas.objects.filter(case=OuterRef("pk"), kind=CanvasKind.MOSAIC)),
            preparing_count=_preparing_count(),
        )
    )


def with_thumbnails(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Add ``thumbnails``: the first canvases of each case, in one query for the whole page."""
    canvases = Canvas.objects.exclude(thumbnail_path="").order_by("created_at", "id")
    return cases.prefetch_related(
        Prefetch("canvases", queryset=canvases[:THUMBNAILS_PER_CASE], to_attr="thumbnails")
    )


def case_search(cases: QuerySet[Case], text: str) -> QuerySet[Case]:
    """Cases in which every word occurs, in any of the lines of ``Case.search_text``."""
    for word in text.lower().split()[:10]:
        cases = cases.filter(search_text__contains=word)
    return cases


def case_tagged(cases: QuerySet[Case], tag: str) -> QuerySet[Case]:
    """Cases that carry the tag, upper and lower case alike."""
    text = " ".join(tag.lower().split())
    return cases.filter(search_text__contains=f"\n#{text}\n") if text else cases


def case_holding(cases: QuerySet[Case], kind: str) -> QuerySet[Case]:
    """Cases that hold a slide, still, video or mosaic ("empty": none of them)."""
    if kind == "empty":
        return cases.filter(slides=None, videos=None, canvases=None)
    found = Q(pk__in=Canvas.objects.filter(kind=kind).values("case_id"))
    if kind == CanvasKind.VIDEO:
        found |= Q(pk__in=Video.objects.values("case_id"))
    return cases.filter(found)


def case_get(*, user: User, case_id: uuid.UUID) -> Case:
    """One case, or ``NotFoundError``."""
    case = Case.objects.visible_to(user).select_related("lab").filter(pk=case_id).first()
    if case is None:
        raise NotFoundError("No such case.")
    return case


def case_facets(*, user: User) -> CaseFacets:
    """What occurs in the cases this person may see."""
    cases = Case.objects.visible_to(user).order_by()
    rows = cases.values_list("organ", "procedure", "diagnosis").distinct()
    organs, procedures, diagnoses = (
        sorted({value for value in column if value}, key=str.lower)
        for column in (zip(*rows, strict=True) if rows else ((), (), ()))
    )
    tags = {tag for row in cases.exclude(tags=[]).values_list("tags", flat=True) for tag in row}
    return CaseFacets(organs, procedures, diagnoses, sorted(tags, key=str.lower))


def labs_to_edit(*, user: User) -> QuerySet[Lab]:
    """The labs in which this person may create cases."""
    roles = [role for role in Role if role.rank >= Role.ANNOTATOR.rank]
    own = Membership.objects.filter(user=user, role__in=roles).values("lab_id")
    return Lab.objects.filter(pk__in=own).order_by("name")


def slide_list(*, user: User) -> QuerySet[Slide]:
    """The slides and stills this person may see."""
    return Slide.objects.visible_to(user).select_related("case", "canvas", "asset", "lab")


def video_list(*, user: User) -> QuerySet[Video]:
    """The videos this person may see."""
    return Video.objects.visible_to(user).select_related("case", "canvas", "asset", "lab")


def slide_get(*, user: User, slide_id: uuid.UUID) -> Slide:
    """One slide, or ``NotFoundError``."""
    return _get(slide_list(user=user), slide_id, "slide")


def video_get(*, user: User, video_id: uuid.UUID) -> Video:
    """One video, or ``NotFoundError``."""
    return _get(video_list(user=user), video_id, "video")


def item_get(*, user: User, kind: str, item_id: uuid.UUID) -> Slide | Video:
    """A slide or a video by the word for it."""
    if kind == "slide":
        return slide_get(user=user, slide_id=item_id)
    if kind == "video":
        return video_get(user=user, video_id=item_id)
    raise NotFoundError("No such item.")


def item_cards(items: Iterable[CaseItem]) -> list[ItemCard]:
    """Items with their newest jobs: one query for all of a kind. The caller may see the items."""
    items = list(items)
    if not items:
        return []
    kind = str(items[0]._meta.model_name)
    jobs = job_latest_for(target_type=kind, target_ids=[item.pk for item in items])
    return [ItemCard(item, kind, jobs.get(item.pk)) for item in items]


def canvas_list(*, user: User) -> QuerySet[Canvas]:
    """The canvases this person may see, with their cases and, for video, the videos."""
    return Canvas.objects.visible_to(user).select_related("case", "video")


def canvas_get(*, user: User, canvas_id: uuid.UUID) -> Canvas:
    """One canvas, or ``NotFoundError``."""
    canvas = canvas_list(user=user).filter(pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such canvas.")
    return canvas


def canvas_of_grant(*, user_id: uuid.UUID, canvas_id: uuid.UUID) -> Canvas:
    """The canvas of a tile grant, if that user is active and still a member of its lab."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    canvas = Canvas.objects.visible_to(user).filter(pk=canvas_id).first() if user else None
    if canvas is None:
        raise NotFoundError("There is no such canvas, or you may no longer see it.")
    return canvas


def canvas_video(canvas: Canvas) -> Video:
    """The video behind a canvas; ``NotFoundError`` where it shows none."""
    video: Video | None = getattr(canvas, "video", None)
    if video is None:
        raise NotFoundError("This canvas shows no video; it has tiles, not frames.")
    return video


def _get(items: QuerySet[_Item], item_id: uuid.UUID, word: str) -> _Item:
    item = items.filter(pk=item_id).first()
    if item is None:
        raise NotFoundError(f"No such {word}.")
    return item


def _count(rows: QuerySet[Slide] | QuerySet[Video] | QuerySet[Canvas]) -> Coalesce:
    """A count of related rows that does not multiply with other counts."""
    counted = rows.order_by().values("case").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def _preparing_count() -> Combinable:
    return _count(Slide.objects.filter(case=OuterRef("pk"), state=ItemState.PREPARING)) + _count(
        Video.objects.filter(case=OuterRef("pk"), state=ItemState.PREPARING)
    )
