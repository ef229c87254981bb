"""What is in the searched set: how many regions carry each value that can be filtered by.

One grouped query counts the current embeddings by canvas, label and review state, whatever their
number, in each group those of recent days and years; the few groups are then counted here. A
value's count is what the search would look into if the value were chosen: all other filters hold,
its own kind's does not.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from django.utils import timezone

from portal.annotations.models import Label, ReviewState
from portal.archive.models import Canvas, CanvasKind, Case
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CURRENT, Embedding
from portal.retrieval.selectors.days import Days, Stretches, days_offered, stretches_of
from portal.retrieval.selectors.filters import CaseScope, Filters

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
    """One value of a facet.

    Attributes:
        value: what a filter takes. name: what a person reads. count: regions of the searched set.
        is_chosen: the filter asks for it now.
        since, until: of ``date``, what its filter takes in the place of ``value``.
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
        case: of what is searched with; None if it has none. leave_out: embeddings of its own.
        excludes_patient: the patient of ``case`` is left out, unless ``filters`` ask for that case
            alone.
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
        is_left_out: unless its case is asked for.
        counts: how many were drawn in each stretch of time.
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
    days = days_offered(timezone.localdate(), filters.since, filters.until)
    stretches = stretches_of(days)
    counts = {facet: _Counts() for facet in FACETS}
    regions, cases = 0, set()
    wanted = _wanted(filters)
    chosen = Days("", filters.since, filters.until).key if filters.since or filters.until else ""
    asked = stretches.of(chosen)
    for group in _groups(searched, labels, stretches):
        failed = [name for name in wanted if wanted[name] not in _keys(group, name)]
        if group.is_left_out and "case" not in wanted:
            failed.append("case")
        if len(failed) > 1:
            continue
        n = sum(group.counts[number] for number in asked)
        if not failed:
            regions += n
            cases |= {group.case_id} if n else set()
            _count_days(counts["date"], group, stretches, asked)
        for facet in (failed or _WORDS) if n else ():
            _count(counts[facet], group, facet, n, in_set=not failed)
    values = {
        facet: tuple(_values(facet, counts[facet], wanted.get(facet, ""), labels))
        for facet in _WORDS
    }
    values["date"] = tuple(_days_values(days, counts["date"], chosen))
    with_value = {
        facet: {value: len(found) for value, found in counts[facet].cases.items()}
        for facet in FACETS
    }
    return Facets(regions, len(cases), values, with_value)


def _wanted(filters: Filters) -> dict[str, str]:
    asked = {facet: str(getattr(filters, facet, "")).lower() for facet in FACETS}
    asked["label"] = str(filters.label_id or "")
    return {facet: value for facet, value in asked.items() if value}


def _groups(
    searched: SearchedSet, labels: dict[uuid.UUID, Label], stretches: Stretches
) -> Iterator[_Group]:
    scope = searched.scope
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
            "slide__stain",
        )
    }
    rows = (
        Embedding.objects.filter(CURRENT, encoder=scope.encoder, lab_id=scope.lab_id)
        .exclude(pk__in=searched.leave_out)
        .not_hidden_from(searched.user)
        .order_by()
        .values_list("canvas_id", "roi__label_id", "roi__review_state")
        .annotate(**stretches.counted("roi__created_at"))
    )
    for canvas_id, label_id, state, *counted in rows:
        canvas = canvases.get(canvas_id)
        if canvas is None:
            continue
        is_left_out, cases = _placed(canvas, searched)
        yield _Group(
            canvas["case_id"],
            is_left_out,
            stretches.split(counted),
            {
                "organ": _word(canvas["case__organ"]),
                "diagnosis": _word(canvas["case__diagnosis"]),
                "label": (str(label_id),) if label_id in labels else (),
                "review_state": (state,),
                "kind": (canvas["kind"],),
                "stain": _word(canvas["slide__stain"] or ""),
                "scanner": _word(canvas["slide__vendor"] or ""),
                "tag": tuple(canvas["case__tags"]),
                "case": cases,
            },
        )


def _placed(canvas: Mapping[str, object], searched: SearchedSet) -> tuple[bool, tuple[str, ...]]:
    """Whether it is left out where no case is asked for, and its values of the facet ``case``.

    The same patient's other cases have none where that patient is left out.
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


def _count_days(
    counts: _Counts, group: _Group, stretches: Stretches, asked: tuple[int, ...]
) -> None:
    for number, n in enumerate(group.counts):
        for key in stretches.keys[number] if n else ():
            counts.regions[key] += n
            if number in asked:
                counts.cases[key].add(group.case_id)


def _count(counts: _Counts, group: _Group, facet: str, n: int, *, in_set: bool) -> None:
    for value in group.values[facet]:
        key = value.lower()
        counts.regions[key] += n
        counts.names[key] = min(counts.names.get(key, value), value)  # capitals first
        if in_set:
            counts.cases[key].add(group.case_id)


def _days_values(days: tuple[Days, ...], counts: _Counts, chosen: str) -> Iterator[FacetValue]:
    """The newest first; what is chosen even where nothing was drawn then."""
    for one in days:
        n, is_chosen = counts.regions[one.key], one.key == chosen
        if n or is_chosen:
            yield FacetValue(one.key, one.name, n, is_chosen, since=one.since, until=one.until)


def _values(
    facet: str, counts: _Counts, chosen: str, labels: dict[uuid.UUID, Label]
) -> Iterator[FacetValue]:
    names = dict(counts.names)
    if chosen and chosen not in names:  # nothing carries it: still shown, so that it can be dropped
        counts.regions[chosen], names[chosen] = 0, chosen
    for key, n in sorted(counts.regions.items(), key=lambda item: (-item[1], item[0])):
        name, color = _named(facet, key, labels) or (names[key], "")
        yield FacetValue(names[key], name, n, key == chosen, color)


def _named(facet: str, key: str, labels: dict[uuid.UUID, Label]) -> tuple[str, str] | None:
    """Name and colour of what has a name beside its value; None for a word of the lab."""
    if facet == "label":
        label = labels.get(uuid.UUID(key))
        return (label.name, label.color) if label else ("Unknown label", "")
    if facet == "review_state" and key in ReviewState.values:
        return str(ReviewState(key).label), ""
    if facet == "kind" and key in CanvasKind.values:
        return str(CanvasKind(key).label), ""
    return (_CASES[CaseScope(key)], "") if facet == "case" else None


def _word(value: str) -> tuple[str, ...]:
    return (value,) if value else ()
