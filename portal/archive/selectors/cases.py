"""Reads of cases, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Count, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.urls import reverse

from portal.archive.models import (
    Canvas,
    CanvasKind,
    Case,
    ItemState,
    Slide,
    TrashEntry,
    TrashKind,
    Video,
)
from portal.archive.selectors.vocabulary import (
    CaseWord,
    coded_cases,
    words_coded,
    words_of_vocabulary,
)
from portal.audit.naming import Named
from portal.core.errors import NotFoundError
from portal.core.text import name_key
from portal.labs.models import User

THUMBNAILS_PER_CASE = 4  # as many as fit a row of the list


@dataclass(frozen=True, slots=True)
class CaseFacets:
    """The values a person can filter cases by: those that occur."""

    organs: list[CaseWord]
    procedures: list[str]
    diagnoses: list[CaseWord]
    tags: list[str]
    stains: list[str]


def case_list(*, user: User, with_shared: bool = False) -> QuerySet[Case]:
    """The cases of the person's labs, with counts of what each holds. Newest first.

    Args:
        with_shared: those that other labs share as well.
    """
    cases = Case.objects.visible_to(user) if with_shared else Case.objects.owned_by(user)
    return cases.select_related("lab").annotate(
        slide_count=_count(Slide.objects.filter(case=OuterRef("pk"))),
        video_count=_count(Video.objects.filter(case=OuterRef("pk"))),
        mosaic_count=_count(Canvas.objects.filter(case=OuterRef("pk"), kind=CanvasKind.MOSAIC)),
        preparing_count=_preparing_count(),
    )


def case_names(ids: Collection[uuid.UUID], user: User) -> dict[uuid.UUID, Named]:
    """Accession numbers and pages of the cases that a reader may see; deleted ones have no page."""
    cases = Case.objects.visible_to(user).filter(pk__in=ids).values_list("pk", "accession")
    names = {pk: Named(name, reverse("archive:case_detail", args=[pk])) for pk, name in cases}
    if missing := set(ids) - set(names):
        trash = TrashEntry.objects.visible_to(user).filter(kind=TrashKind.CASE)
        for entry in trash.filter(target_id__in=missing):
            names[entry.target_id] = Named(f"{entry.name} (deleted)")
    return names


def with_thumbnails(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Add ``thumbnails``: the first canvases of each case, in one query for the whole page."""
    canvases = Canvas.objects.exclude(thumbnail_path="").order_by("created_at", "id")
    return cases.prefetch_related(
        Prefetch("canvases", queryset=canvases[:THUMBNAILS_PER_CASE], to_attr="thumbnails")
    )


def case_search(cases: QuerySet[Case], text: str) -> QuerySet[Case]:
    """Cases in which every word occurs, in any of the lines of ``Case.search_text``.

    A word that is a code of the lab's vocabulary finds the cases with its terms too.
    """
    words = name_key(text).split()[:10]
    coded = coded_cases(cases, words)
    for word in words:
        cases = cases.filter(Q(search_text__contains=word) | coded[word])
    return cases


def case_tagged(cases: QuerySet[Case], tag: str) -> QuerySet[Case]:
    """Cases that carry the tag, upper and lower case alike."""
    return cases.filter(case_tagged_q(tag))


def case_tagged_q(tag: str, *, prefix: str = "") -> Q:
    """The same as a condition on a case behind ``prefix`` ("case__"); an empty tag fits all."""
    text = name_key(tag)
    return Q(**{f"{prefix}search_text__contains": f"\n#{text}\n"}) if text else Q()


def case_stained(cases: QuerySet[Case], stain: str) -> QuerySet[Case]:
    """Cases that hold a slide of this stain, regardless of upper and lower case."""
    slides = Slide.objects.filter(stain__iexact=stain)
    return cases.filter(pk__in=slides.order_by().values("case_id"))


def case_holding(cases: QuerySet[Case], kind: str) -> QuerySet[Case]:
    """Cases that hold a slide, still, video or mosaic ("empty": none of them)."""
    if kind == "empty":
        for holding in (
            Slide.objects.order_by().values_list("case_id", flat=True),
            Video.objects.order_by().values_list("case_id", flat=True),
            Canvas.objects.order_by().values_list("case_id", flat=True),
        ):
            cases = cases.exclude(pk__in=holding)
        return cases
    condition = Q(pk__in=Canvas.objects.filter(kind=kind).values("case_id"))
    if kind == CanvasKind.VIDEO:
        condition |= Q(pk__in=Video.objects.values("case_id"))
    return cases.filter(condition)


def case_get(*, user: User, case_id: uuid.UUID, with_shared: bool = True) -> Case:
    """A case, shared ones too unless ``with_shared`` is false; ``NotFoundError`` if not visible."""
    cases = Case.objects.visible_to(user) if with_shared else Case.objects.owned_by(user)
    case = cases.select_related("lab").filter(pk=case_id).first()
    if case is None:
        raise NotFoundError("No such case.")
    return case


def case_facets(*, user: User, with_vocabulary: bool = False) -> CaseFacets:
    """Values that occur in the cases of the person's labs.

    Args:
        with_vocabulary: The terms of their vocabularies too, which no case may have.
    """
    cases = Case.objects.owned_by(user).order_by()
    rows = cases.values_list("organ", "procedure", "diagnosis").distinct()
    organs, procedures, diagnoses = zip(*rows, strict=True) if rows else ((), (), ())
    terms = words_of_vocabulary(user) if with_vocabulary else {}
    words = words_coded(
        user,
        {
            "organ": words_of((*organs, *terms.get("organ", ()))),
            "diagnosis": words_of((*diagnoses, *terms.get("diagnosis", ()))),
        },
    )
    tags = {tag for row in cases.exclude(tags=[]).values_list("tags", flat=True) for tag in row}
    slides = Slide.objects.owned_by(user).exclude(stain="").order_by()
    stains = words_of(slides.values_list("stain", flat=True).distinct())
    return CaseFacets(
        words["organ"],
        words_of(procedures),
        words["diagnosis"],
        sorted(tags, key=str.lower),
        stains,
    )


def words_of(values: Iterable[str]) -> list[str]:
    """Distinct words, one spelling each: a filter finds all spellings of a word."""
    spelled = {value.casefold(): value for value in sorted(values, reverse=True) if value}
    return [spelled[word] for word in sorted(spelled)]


def _count(rows: QuerySet[Slide] | QuerySet[Video] | QuerySet[Canvas]) -> Coalesce:
    """A count of related rows that does not multiply with other counts."""
    counted = rows.order_by().values("case").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def _preparing_count() -> Combinable:
    return _count(Slide.objects.filter(case=OuterRef("pk"), state=ItemState.PREPARING)) + _count(
        Video.objects.filter(case=OuterRef("pk"), state=ItemState.PREPARING)
    )
