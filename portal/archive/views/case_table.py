"""The table of cases: what the query string asks for, as a page of rows and sortable columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

from portal.archive import selectors
from portal.archive.filters import CONTENT_KINDS, CaseFilter
from portal.archive.models import AgeBand, Case, Sex
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by
from portal.labs.selectors import lab_current

_COLUMNS = (
    ("accession", "Accession"),
    ("organ", "Organ"),
    ("diagnosis", "Diagnosis"),
    ("procedure", "Procedure"),
    ("", "Tags"),
    ("", "Holds"),
    ("created_at", "Added"),
)
_FILTERS = (
    *("q", "organ", "diagnosis", "procedure", "sex", "age_band", "tag", "stain", "kind"),
    "patient_key",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; ``ordering`` is what a click on it asks for, empty if it cannot be sorted."""

    title: str
    ordering: str
    aria_sort: str


class CaseTable(TypedDict):
    """Context of ``archive/_case_table.html``."""

    lab: Lab | None
    page_obj: Page[Case]
    page_range: list[int | str]
    columns: list[Column]
    is_filtered: bool
    choices: dict[str, Sequence[tuple[str, str]]]


def case_table(request: HttpRequest, *, user: User, per_page: int) -> CaseTable:
    """The rows and headings that the query string asks for."""
    lab = lab_current(user, chosen=lab_chosen_by(request))
    cases = selectors.case_list(user=user)
    found = CaseFilter(request.GET, queryset=cases.filter(lab=lab) if lab else cases)
    paginator = Paginator(selectors.with_thumbnails(found.qs), per_page)
    page = paginator.get_page(request.GET.get("page"))
    return {
        "lab": lab,
        "page_obj": page,
        "page_range": list(paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1)),
        "columns": _columns(request.GET.get("ordering", "-created_at")),
        "is_filtered": any(request.GET.get(name, "").strip() for name in _FILTERS),
        "choices": {"sex": Sex.choices, "age_band": AgeBand.choices, "kind": CONTENT_KINDS},
    }


def _columns(ordering: str) -> list[Column]:
    field, is_down = ordering.removeprefix("-"), ordering.startswith("-")
    columns = []
    for name, title in _COLUMNS:
        is_sorted = bool(name) and name == field
        aria = ("descending" if is_down else "ascending") if is_sorted else ""
        wanted = f"-{name}" if is_sorted and not is_down else name
        columns.append(Column(title, wanted, aria))
    return columns
