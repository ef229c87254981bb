"""Filters of the lists, one for API and pages."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet

from portal.archive import selectors
from portal.archive.models import AgeBand, Case, ItemState, Sex, Slide, Video

CONTENT_KINDS = (
    ("slide", "Slides"),
    ("still", "Stills"),
    ("video", "Videos"),
    ("mosaic", "Mosaics"),
    ("empty", "Nothing yet"),
)
SORTS = ("accession", "organ", "diagnosis", "procedure", "created_at", "updated_at")


class CaseFilter(django_filters.FilterSet):
    """``?q=carcinoma&organ=breast&ordering=-created_at``."""

    lab = django_filters.UUIDFilter(field_name="lab_id", label="Only of this lab")
    q = django_filters.CharFilter(
        method="search",
        label="Words in accession, patient key, organ, procedure, diagnosis or tags",
        max_length=200,
    )
    organ = django_filters.CharFilter(lookup_expr="iexact")
    procedure = django_filters.CharFilter(lookup_expr="iexact")
    diagnosis = django_filters.CharFilter(lookup_expr="iexact")
    patient_key = django_filters.CharFilter(lookup_expr="exact")
    accession = django_filters.CharFilter(lookup_expr="exact")
    sex = django_filters.ChoiceFilter(choices=Sex.choices)
    age_band = django_filters.ChoiceFilter(choices=AgeBand.choices)
    tag = django_filters.CharFilter(method="tagged", label="Carries this tag")
    stain = django_filters.CharFilter(method="stained", label="Holds a slide of this stain")
    kind = django_filters.ChoiceFilter(
        choices=CONTENT_KINDS, method="holding", label="Holds content of this kind"
    )
    ordering = django_filters.OrderingFilter(fields=[(name, name) for name in SORTS])

    class Meta:
        model = Case
        fields: tuple[str, ...] = ()

    def search(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """Every word must occur."""
        return selectors.case_search(cases, value)

    def tagged(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """By one tag."""
        return selectors.case_tagged(cases, value)

    def stained(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """By the stain of a slide."""
        return selectors.case_stained(cases, value)

    def holding(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """By what the case holds."""
        return selectors.case_holding(cases, value)

    @property
    def qs(self) -> Any:
        """Ties are ordered by id, so that a page never repeats or skips a row."""
        found = super().qs
        return found.order_by(*found.query.order_by, "id") if found.query.order_by else found


class ItemFilter(django_filters.FilterSet):
    """``?case=<id>&state=ready``."""

    lab = django_filters.UUIDFilter(field_name="case__lab_id", label="Only of this lab")
    case = django_filters.UUIDFilter(field_name="case_id")
    state = django_filters.ChoiceFilter(choices=ItemState.choices)


class SlideFilter(ItemFilter):
    """Of slides."""

    stain = django_filters.CharFilter(lookup_expr="iexact")

    class Meta:
        model = Slide
        fields: tuple[str, ...] = ()


class VideoFilter(ItemFilter):
    """Of videos."""

    class Meta:
        model = Video
        fields: tuple[str, ...] = ()
