"""What a page of similar cases can be narrowed to, as links that choose and drop a value."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from portal.retrieval.selectors import FACETS, Facets, FacetValue

SHOWN = 7  # values of a facet that stand open; the others are one click away
_TITLES = {
    "organ": "Organ",
    "diagnosis": "Diagnosis",
    "label": "Label",
    "review_state": "Review",
    "kind": "Image",
    "scanner": "Scanner",
    "tag": "Tag",
}


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value, and the query that chooses it (or drops it, where it is chosen)."""

    facet: str
    value: FacetValue
    query: str
    element_id: str


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
        if len(values) < 2 and not any(value.is_chosen for value in values):
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


def _toggled(query: QueryDict, facet: str, value: FacetValue) -> str:
    changed = query.copy()
    changed.pop(facet, None)
    if not value.is_chosen:
        changed[facet] = value.value
    return "?" + changed.urlencode()
