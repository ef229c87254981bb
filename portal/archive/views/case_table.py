"""The table of cases: a page of rows by the query string, with sortable columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.utils.safestring import SafeString

from portal.archive.extensions import Slot, rendered
from portal.archive.filters import CONTENT_KINDS, CaseFilter
from portal.archive.models import AgeBand, Case, Modality, Sex
from portal.archive.selectors.cases import case_list, with_thumbnails
from portal.labs.models import Lab, Role, User
from portal.labs.requests import lab_chosen_by
from portal.labs.selectors import lab_current, memberships_of

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
    "modality",
    "patient_key",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; ``ordering`` is what a click on it asks for, empty if it cannot be sorted."""

    title: str
    ordering: str
    aria_sort: str


class CaseTable(TypedDict):
    """Context of ``archive/_case_table.html``.

    Attributes:
        managed: All labs that the person manages.
        may_manage: Whether one of them is shown.
    """

    lab: Lab | None
    page_obj: Page[Case]
    page_range: list[int | str]
    columns: list[Column]
    is_filtered: bool
    choices: dict[str, Sequence[tuple[str, str]]]
    filter_json: str
    may_create: bool
    managed: list[Lab]
    may_manage: bool
    selection_actions: SafeString


def case_table(request: HttpRequest, *, user: User, per_page: int) -> CaseTable:
    """The rows and headings that the query string asks for."""
    lab = lab_current(user, chosen=lab_chosen_by(request))
    cases = case_list(user=user)
    case_filter = CaseFilter(request.GET, queryset=cases.filter(lab=lab) if lab else cases)
    paginator = Paginator(with_thumbnails(case_filter.qs).defer("notes", "search_text"), per_page)
    page = paginator.get_page(request.GET.get("page"))
    memberships = memberships_of(user)
    managed = [membership.lab for membership in memberships if membership.role == Role.MANAGER]
    labs = [lab_choice for lab_choice in managed if lab in (None, lab_choice)]
    return {
        "lab": lab,
        "page_obj": page,
        "page_range": list(paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1)),
        "columns": _columns(request.GET.get("ordering", "-created_at")),
        "is_filtered": any(request.GET.get(name, "").strip() for name in _FILTERS),
        "choices": {
            "sex": Sex.choices,
            "age_band": AgeBand.choices,
            "kind": CONTENT_KINDS,
            "modality": Modality.choices,
        },
        "filter_json": _filter_json(request, lab),
        "may_create": any(membership.role != Role.VIEWER for membership in memberships),
        "managed": managed,
        "may_manage": bool(labs),
        "selection_actions": rendered(Slot.SELECTION_ACTION, request, *labs[:1]),
    }


def _filter_json(request: HttpRequest, lab: Lab | None) -> str:
    """The filter of the query string, as REST takes it for a change of all matching cases."""
    filters = {name: value for name in _FILTERS if (value := request.GET.get(name, "").strip())} | (
        {"lab": str(lab.pk)} if lab else {}
    )
    return json.dumps(filters)


def _columns(ordering: str) -> list[Column]:
    field, is_down = ordering.removeprefix("-"), ordering.startswith("-")
    columns = []
    for name, title in _COLUMNS:
        is_sorted = bool(name) and name == field
        aria = ("descending" if is_down else "ascending") if is_sorted else ""
        next_ordering = f"-{name}" if is_sorted and not is_down else name
        columns.append(Column(title, next_ordering, aria))
    return columns
