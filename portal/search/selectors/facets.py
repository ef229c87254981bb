"""Facets of the searched set: the number of regions with each filter value.

One grouped query counts the current embeddings by canvas, label and review state, and in each
group those of recent days and years; Python sums the few groups. A value's count is the number
of regions that the search would cover if the value were chosen: all other filters apply, the
filter of its own facet does not.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from django.utils import timezone

from portal.annotations.models import Label, ReviewState
from portal.archive.models import Canvas, CanvasKind, Case, Modality
from portal.archive.selectors.scanners import scanner_name
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding
from portal.labs.models import User
from portal.search.selectors.date_ranges import (
    DateRange,
    Intervals,
    date_ranges_offered,
    intervals_of,
)
from portal.search.selectors.filters import CaseScope, Filters

FACETS = (
    *("organ", "diagnosis", "stain", "label", "review_state", "kind", "scanner", "tag"),
    *("date", "case"),
)
"""The kinds of values, as they are named in ``Filters``; ``label`` is its ``label_id``, ``date``
is ``since`` and ``until``."""
_WORDS = tuple(facet for facet in FACETS if facet != "date")
_CASES = {CaseScope.ONLY: "This case", CaseScope.OTHERS: "Other cases"}


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a facet.

    Attributes:
        value: Value of the filter.
        name: Display name.
        count: Number of regions in the searched set.
        is_chosen: Whether the filter has this value.
        since, until: Filter values of ``date``, instead of ``value``.
    """

    value: str
    name: str
    count: int
    is_chosen: bool
    color: str = ""
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """Counts of the searched set.

    Attributes:
        regions, cases: Numbers with all filters applied.
        values: Values of each facet, most frequent first.
        cases_with: Number of cases by facet and value.
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
    """Regions covered by a search.

    Attributes:
        user: Person who searches; regions hidden from them are not counted.
        case: Case of the query; None if it has none.
        leave_out: Embeddings of the query itself.
        excludes_patient: Leave out the patient of ``case`` unless ``filters`` select that case.
    """

    user: User
    scope: Scope
    filters: Filters
    case: Case | None
    leave_out: list[int]
    excludes_patient: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Regions of one canvas that share label and review state.

    Attributes:
        is_left_out: Left out unless its case is selected.
        counts: Number of regions drawn in each interval of time.
    """

    case_id: uuid.UUID
    is_left_out: bool
    counts: tuple[int, ...]
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
    ranges = date_ranges_offered(timezone.localdate(), filters.since, filters.until)
    intervals = intervals_of(ranges)
    counts = {facet: _Counts() for facet in FACETS}
    regions, cases = 0, set()
    requested_values = _requested_values(filters)
    chosen = (
        DateRange("", filters.since, filters.until).key if filters.since or filters.until else ""
    )
    requested = intervals.of(chosen)
    for group in _groups(searched, labels, intervals):
        failed = [
            name for name in requested_values if requested_values[name] not in _keys(group, name)
        ]
        if group.is_left_out and "case" not in requested_values:
            failed.append("case")
        if len(failed) > 1:
            continue
        n = sum(group.counts[number] for number in requested)
        if not failed:
            regions += n
            cases |= {group.case_id} if n else set()
            _count_date_ranges(counts["date"], group, intervals, requested)
        for facet in (failed or _WORDS) if n else ():
            _count(counts[facet], group, facet, n, in_set=not failed)
    values = {
        facet: tuple(_values(facet, counts[facet], requested_values.get(facet, ""), labels))
        for facet in _WORDS
    }
    values["date"] = tuple(_date_range_values(ranges, counts["date"], chosen))
    with_value = {
        facet: {value: len(case_ids) for value, case_ids in counts[facet].cases.items()}
        for facet in FACETS
    }
    return Facets(regions, len(cases), values, with_value)


def _requested_values(filters: Filters) -> dict[str, str]:
    requested = {facet: str(getattr(filters, facet, "")).lower() for facet in FACETS}
    requested["label"] = str(filters.label_id or "")
    return {facet: value for facet, value in requested.items() if value}


def _groups(
    searched: SearchedSet, labels: dict[uuid.UUID, Label], intervals: Intervals
) -> Iterator[_Group]:
    scope = searched.scope
    canvases = {
        row["pk"]: row
        for row in Canvas.objects.filter(lab_id=scope.lab_id).values(
            "pk",
            "kind",
            "modality",
            "case_id",
            "case__organ",
            "case__diagnosis",
            "case__patient_key",
            "case__tags",
            "slide__vendor",
            "slide__stain",
        )
    }
    rows = (
        Embedding.objects.filter(CURRENT, encoder=scope.encoder, lab_id=scope.lab_id)
        .exclude(pk__in=searched.leave_out)
        .not_hidden_from(searched.user)
        .order_by()
        .values_list("canvas_id", "roi__label_id", "roi__review_state")
        .annotate(**intervals.counted("roi__created_at"))
    )
    for canvas_id, label_id, state, *counted in rows:
        canvas = canvases.get(canvas_id)
        if canvas is None:
            continue
        is_left_out, cases = _case_values(canvas, searched)
        yield _Group(
            canvas["case_id"],
            is_left_out,
            intervals.split(counted),
            {
                "organ": _as_tuple(canvas["case__organ"]),
                "diagnosis": _as_tuple(canvas["case__diagnosis"]),
                "label": (str(label_id),) if label_id in labels else (),
                "review_state": (state,),
                "kind": (canvas["kind"],),
                "stain": _as_tuple(_stain(canvas)),
                "scanner": _as_tuple(canvas["slide__vendor"] or ""),
                "tag": tuple(canvas["case__tags"]),
                "case": cases,
            },
        )


def _stain(canvas: Mapping[str, object]) -> str:
    return str(canvas["slide__stain"] or "") if canvas["modality"] == Modality.HISTOLOGY else ""


def _case_values(
    canvas: Mapping[str, object], searched: SearchedSet
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the canvas is left out without a case filter, and its ``case`` values.

    Other cases of an excluded patient have no value.
    """
    case = searched.case
    if case is None:
        return False, ()
    is_own = canvas["case_id"] == case.pk
    is_patient = bool(case.patient_key) and canvas["case__patient_key"] == case.patient_key
    is_left_out = searched.excludes_patient and (is_own or is_patient)
    if is_own:
        return is_left_out, (CaseScope.ONLY,)
    return is_left_out, () if is_left_out else (CaseScope.OTHERS,)


def _keys(group: _Group, facet: str) -> set[str]:
    return {value.lower() for value in group.values[facet]}


def _count_date_ranges(
    counts: _Counts, group: _Group, intervals: Intervals, requested: tuple[int, ...]
) -> None:
    for number, n in enumerate(group.counts):
        for key in intervals.keys[number] if n else ():
            counts.regions[key] += n
            if number in requested:
                counts.cases[key].add(group.case_id)


def _count(counts: _Counts, group: _Group, facet: str, n: int, *, in_set: bool) -> None:
    for value in group.values[facet]:
        key = value.lower()
        counts.regions[key] += n
        counts.names[key] = min(counts.names.get(key, value), value)  # prefer capitals
        if in_set:
            counts.cases[key].add(group.case_id)


def _date_range_values(
    ranges: tuple[DateRange, ...], counts: _Counts, chosen: str
) -> Iterator[FacetValue]:
    """Newest first; the chosen range even without regions."""
    for date_range in ranges:
        n, is_chosen = counts.regions[date_range.key], date_range.key == chosen
        if n or is_chosen:
            yield FacetValue(
                date_range.key,
                date_range.name,
                n,
                is_chosen,
                since=date_range.since,
                until=date_range.until,
            )


def _values(
    facet: str, counts: _Counts, chosen: str, labels: dict[uuid.UUID, Label]
) -> Iterator[FacetValue]:
    names = dict(counts.names)
    if chosen and chosen not in names:  # no region has it, but it can be removed
        counts.regions[chosen], names[chosen] = 0, chosen
    for key, n in sorted(counts.regions.items(), key=lambda item: (-item[1], item[0])):
        name, color = _facet_value(facet, key, labels) or (names[key], "")
        yield FacetValue(names[key], name, n, key == chosen, color)


def _facet_value(facet: str, key: str, labels: dict[uuid.UUID, Label]) -> tuple[str, str] | None:
    """Name and colour of a value that has a display name; None for free text."""
    if facet == "label":
        label = labels.get(uuid.UUID(key))
        return (label.name, label.color) if label else ("Unknown label", "")
    if facet == "review_state" and key in ReviewState.values:
        return str(ReviewState(key).label), ""
    if facet == "kind" and key in CanvasKind.values:
        return str(CanvasKind(key).label), ""
    if facet == "scanner":
        return scanner_name(key), ""
    return (_CASES[CaseScope(key)], "") if facet == "case" else None


def _as_tuple(value: str) -> tuple[str, ...]:
    return (value,) if value else ()
