"""What is in the searched set: how many regions carry each value that can be filtered by.

One grouped query counts the current embeddings by canvas, label and review state, whatever their
number; the few groups are then counted here. A value's count is what the search would look into if
the value were chosen: all other filters hold, its own kind's does not.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from portal.annotations.models import Label, ReviewState
from portal.archive.models import Canvas, CanvasKind, Case
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CURRENT, Embedding
from portal.retrieval.selectors.filters import CaseScope, Filters, drawn_within

FACETS = ("organ", "diagnosis", "label", "review_state", "kind", "scanner", "tag")
"""The kinds of values, as they are named in ``Filters`` (``label`` is its ``label_id``)."""


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One value of a facet.

    Attributes:
        value: what a filter takes. name: what a person reads. count: regions of the searched set.
        is_chosen: the filter asks for it now.
    """

    value: str
    name: str
    count: int
    is_chosen: bool
    color: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """The searched set.

    Attributes:
        regions, cases: in it, with every filter. values: facet -> its values, the most first.
        cases_with: facet -> value -> cases of the set that have a region with it.
    """

    regions: int
    cases: int
    values: dict[str, tuple[FacetValue, ...]]
    cases_with: dict[str, dict[str, int]]

    def base_rate(self, facet: str, value: str) -> tuple[int, int]:
        """Cases of the set with the value, and all its cases."""
        return self.cases_with[facet].get(value, 0), self.cases


@dataclass(frozen=True, slots=True)
class SearchedSet:
    """What a search looks into.

    Attributes:
        user: who searches: what is hidden from them is not counted.
        case: of what is searched with; None where it has none. leave_out: embeddings of its own.
        excludes_patient: the patient of ``case`` is left out.
    """

    user: User
    scope: Scope
    filters: Filters
    case: Case | None
    leave_out: list[int]
    excludes_patient: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Regions of one canvas that share label and review state."""

    case_id: uuid.UUID
    regions: int
    values: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class _Counts:
    regions: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    cases: defaultdict[str, set[uuid.UUID]] = field(default_factory=lambda: defaultdict(set))


def facets_of(searched: SearchedSet) -> Facets:
    """Count the searched set, in three queries."""
    scope, filters = searched.scope, searched.filters
    labels = {label.pk: label for label in Label.objects.filter(lab_id=scope.lab_id)}
    counts = {facet: _Counts() for facet in FACETS}
    regions, cases = 0, set()
    wanted = _wanted(filters)
    for group in _groups(searched, labels):
        failed = [name for name, value in wanted.items() if value not in _keys(group, name)]
        if len(failed) > 1:
            continue
        if not failed:
            regions += group.regions
            cases.add(group.case_id)
        for facet in failed or FACETS:
            _count(counts[facet], group, facet, in_set=not failed)
    values = {
        facet: tuple(_values(facet, counts[facet], wanted.get(facet, ""), labels))
        for facet in FACETS
    }
    with_value = {
        facet: {value: len(found) for value, found in counts[facet].cases.items()}
        for facet in FACETS
    }
    return Facets(regions, len(cases), values, with_value)


def _wanted(filters: Filters) -> dict[str, str]:
    asked = {facet: str(getattr(filters, facet, "")).lower() for facet in FACETS}
    asked["label"] = str(filters.label_id or "")
    return {facet: value for facet, value in asked.items() if value}


def _groups(searched: SearchedSet, labels: dict[uuid.UUID, Label]) -> Iterator[_Group]:
    scope, filters = searched.scope, searched.filters
    canvases = {
        row["pk"]: row
        for row in Canvas.objects.filter(lab_id=scope.lab_id).values(
            "pk",
            "kind",
            "case_id",
            "case__organ",
            "case__diagnosis",
            "case__patient_key",
            "case__tags",
            "slide__vendor",
        )
    }
    rows = (
        Embedding.objects.filter(CURRENT, drawn_within(filters, "roi__"), encoder=scope.encoder)
        .filter(lab_id=scope.lab_id)
        .exclude(pk__in=searched.leave_out)
        .not_hidden_from(searched.user)
        .order_by()
        .values_list("canvas_id", "roi__label_id", "roi__review_state")
        .annotate(n=Count("pk"))
    )
    for canvas_id, label_id, state, n in rows:
        canvas = canvases.get(canvas_id)
        if canvas is None or not _in_scope(canvas, searched):
            continue
        yield _Group(
            canvas["case_id"],
            n,
            {
                "organ": _word(canvas["case__organ"]),
                "diagnosis": _word(canvas["case__diagnosis"]),
                "label": (str(label_id),) if label_id in labels else (),
                "review_state": (state,),
                "kind": (canvas["kind"],),
                "scanner": _word(canvas["slide__vendor"] or ""),
                "tag": tuple(canvas["case__tags"]),
            },
        )


def _in_scope(canvas: Mapping[str, object], searched: SearchedSet) -> bool:
    case, where = searched.case, searched.filters.case
    if case is None:
        return True
    is_own = canvas["case_id"] == case.pk
    if where is CaseScope.ONLY:
        return is_own
    if where is CaseScope.OTHERS and is_own:
        return False
    if not searched.excludes_patient:
        return True
    is_patient = bool(case.patient_key) and canvas["case__patient_key"] == case.patient_key
    return not (is_own or is_patient)


def _keys(group: _Group, facet: str) -> set[str]:
    return {value.lower() for value in group.values[facet]}


def _count(counts: _Counts, group: _Group, facet: str, *, in_set: bool) -> None:
    for value in group.values[facet]:
        key = value.lower()
        counts.regions[key] += group.regions
        counts.names[key] = min(counts.names.get(key, value), value)  # capitals first
        if in_set:
            counts.cases[key].add(group.case_id)


def _values(
    facet: str, counts: _Counts, chosen: str, labels: dict[uuid.UUID, Label]
) -> Iterator[FacetValue]:
    names = dict(counts.names)
    if chosen and chosen not in names:  # nothing carries it: still shown, so that it can be dropped
        counts.regions[chosen], names[chosen] = 0, chosen
    for key, n in sorted(counts.regions.items(), key=lambda item: (-item[1], item[0])):
        name, color, value = names[key], "", names[key]
        if facet == "label":
            label = labels.get(uuid.UUID(key))
            name, color = (label.name, label.color) if label else ("Unknown label", "")
        elif facet == "review_state":
            name = ReviewState(key).label if key in ReviewState.values else key
        elif facet == "kind":
            name = CanvasKind(key).label if key in CanvasKind.values else key
        yield FacetValue(value, name, n, key == chosen, color)


def _word(value: str) -> tuple[str, ...]:
    return (value,) if value else ()
