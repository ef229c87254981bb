"""What a page of similar cases can be narrowed to, as links that choose and drop a value."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from portal.retrieval.selectors import FACETS, FILTER_TITLES, Facets, FacetValue

SHOWN = 7  # values of a facet that stand open; the others are one click away
_TITLES = FILTER_TITLES | {"label": "Label", "date": "Drawn", "case": "Cases"}
_FIELDS = {"date": ("since", "until"), "case": ("case",)}
"""Facets whose values stand in fields of the form as well, and the names of these."""


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value, and the query that chooses it (or drops it, where it is chosen)."""

    facet: str
    value: FacetValue
    query: str
    element_id: str

    @property
    def has_field(self) -> bool:
        """The form sends it by a field of its own."""
        return self.facet in _FIELDS


@dataclass(frozen=True, slots=True)
class FacetLinks:
    """The values of one facet: those that stand open, and the others."""

    title: str
    shown: list[FacetLink]
    more: list[FacetLink]


def facet_links(facets: Facets, query: QueryDict) -> list[FacetLinks]:
    """Of each facet that has a choice to make: two values, or one that is chosen."""
    found = []
    for facet in FACETS:
        values = facets.values[facet]
        if not _is_choice(facet, values, facets.regions):
            continue
        links = [
            FacetLink(facet, value, _toggled(query, facet, value), f"facet-{facet}-{i}")
            for i, value in enumerate(values)
        ]
        links.sort(key=lambda link: not link.value.is_chosen)
        found.append(FacetLinks(_TITLES[facet], links[:SHOWN], links[SHOWN:]))
    return found


def chosen_links(facets: list[FacetLinks]) -> list[tuple[str, FacetLink]]:
    """What is chosen now: the facet's title and a link that drops it."""
    return [(links.title, link) for links in facets for link in links.shown if link.value.is_chosen]


def _is_choice(facet: str, values: tuple[FacetValue, ...], regions: int) -> bool:
    """Something is chosen, or there is something to choose between.

    Spans of days overlap: there is a choice if one of them lacks some of the regions.
    """
    if any(value.is_chosen for value in values):
        return True
    if facet == "date":
        return any(value.count != regions for value in values)
    return len(values) > 1


def _toggled(query: QueryDict, facet: str, value: FacetValue) -> str:
    changed = query.copy()
    for name in _FIELDS.get(facet, (facet,)):
        changed.pop(name, None)
    if not value.is_chosen:
        changed.update(_sent(facet, value))
    return "?" + changed.urlencode()


def _sent(facet: str, value: FacetValue) -> dict[str, str]:
    if facet != "date":
        return {facet: value.value}
    ends = {"since": value.since, "until": value.until}
    return {name: str(day) for name, day in ends.items() if day}
