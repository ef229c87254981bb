"""Filters of the lists, one for API, pages and changes of many cases."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import django_filters
from django.db.models import QuerySet

from portal.archive.models import AgeBand, Case, ItemState, Modality, Sex, Slide, Video
from portal.archive.selectors.cases import case_holding, case_search, case_stained, case_tagged
from portal.archive.selectors.vocabulary import case_worded
from portal.archive.services.bulk import MAX_CASES
from portal.core.errors import InvalidInputError
from portal.labs.models import User

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
        label="Words in accession, patient key, organ, procedure, diagnosis, clinical question, "
        "notes or tags; codes of organ and diagnosis",
        max_length=200,
    )
    organ = django_filters.CharFilter(method="worded", label="Organ, or its code")
    procedure = django_filters.CharFilter(lookup_expr="iexact")
    diagnosis = django_filters.CharFilter(method="worded", label="Diagnosis, or its code")
    patient_key = django_filters.CharFilter(lookup_expr="exact")
    accession = django_filters.CharFilter(lookup_expr="exact")
    sex = django_filters.ChoiceFilter(choices=Sex.choices)
    age_band = django_filters.ChoiceFilter(choices=AgeBand.choices)
    modality = django_filters.ChoiceFilter(choices=Modality.choices)
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
        """Require every word."""
        return case_search(cases, value)

    def worded(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """Filter by a word or by its code in the lab's vocabulary."""
        return case_worded(cases, name, value)

    def tagged(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """Filter by tag."""
        return case_tagged(cases, value)

    def stained(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """Filter by the stain of a slide."""
        return case_stained(cases, value)

    def holding(self, cases: QuerySet[Case], name: str, value: str) -> QuerySet[Case]:
        """Filter by the content of the case."""
        return case_holding(cases, value)

    @property
    def qs(self) -> Any:
        """Ties are ordered by id, so that a page never repeats or skips a row."""
        cases = super().qs
        return cases.order_by(*cases.query.order_by, "id") if cases.query.order_by else cases


def cases_filtered(user: User, params: Mapping[str, Any]) -> QuerySet[Case]:
    """Cases of the person's labs that match parameters of the list of cases.

    Raises:
        InvalidInputError: an unknown parameter, or a value that it does not take.
    """
    unknown = params.keys() - CaseFilter.base_filters.keys()
    if unknown:
        raise InvalidInputError(f"filter: unknown parameter {', '.join(sorted(unknown))}.")
    case_filter = CaseFilter(params, queryset=Case.objects.owned_by(user))
    if not case_filter.is_valid():
        name, errors = next(iter(case_filter.errors.items()))
        raise InvalidInputError(f"filter: {name}: {errors[0]}")
    cases: QuerySet[Case] = case_filter.qs
    return cases


def cases_chosen(user: User, data: dict[str, Any]) -> list[uuid.UUID]:
    """Take ``cases`` or ``filter`` out of validated data; ids of the cases they name.

    Raises:
        InvalidInputError: both or neither of ``cases`` and ``filter``, or too many matches.
    """
    cases, params = data.pop("cases", None), data.pop("filter", None)
    if (cases is None) == (params is None):
        raise InvalidInputError("cases, filter: give one of them.")
    if cases is not None:
        return list(cases)
    matching = cases_filtered(user, params)
    if (count := matching.count()) > MAX_CASES:
        raise InvalidInputError(
            f"filter: it matches {count:,} cases; at most {MAX_CASES:,} can be changed at once. "
            "Narrow the filter."
        )
    return list(matching.values_list("pk", flat=True))


class ItemFilter(django_filters.FilterSet):
    """``?case=<id>&state=ready``."""

    lab = django_filters.UUIDFilter(field_name="case__lab_id", label="Only of this lab")
    case = django_filters.UUIDFilter(field_name="case_id")
    state = django_filters.ChoiceFilter(choices=ItemState.choices)
    modality = django_filters.ChoiceFilter(
        field_name="canvas__modality", choices=Modality.choices, label="Shown on such a canvas"
    )


class SlideFilter(ItemFilter):
    """Filters of the list of slides."""

    stain = django_filters.CharFilter(lookup_expr="iexact")

    class Meta:
        model = Slide
        fields: tuple[str, ...] = ()


class VideoFilter(ItemFilter):
    """Filters of the list of videos."""

    class Meta:
        model = Video
        fields: tuple[str, ...] = ()
