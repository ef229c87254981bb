"""Filter links of the page of similar cases."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from portal.archive.models import VocabularyField
from portal.archive.selectors.vocabulary import words_coded
from portal.labs.models import User
from portal.search.selectors.facets import FACETS, Facets, FacetValue
from portal.search.selectors.filters import FILTER_TITLES

SHOWN = 7  # values shown per facet; the others are one click away
_TITLES = FILTER_TITLES | {"label": "Label", "date": "Drawn", "case": "Cases"}
_FIELDS = {"date": ("since", "until"), "case": ("case",)}
"""Form fields of facets."""


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value with its code, and the query string that chooses or removes it."""

    facet: str
    value: FacetValue
    query: str
    element_id: str
    text: str

    @property
    def has_field(self) -> bool:
        """True if the form has a separate field for the value."""
        return self.facet in _FIELDS


@dataclass(frozen=True, slots=True)
class FacetLinks:
    """Values of one facet: those shown, and the others.

    Attributes:
        identifiers: Name and identifier of each value that files name otherwise than people.
    """

    title: str
    shown: list[FacetLink]
    more: list[FacetLink]
    identifiers: list[tuple[str, str]]


def facet_links(facets: Facets, query: QueryDict, *, user: User) -> list[FacetLinks]:
    """Links of each facet with at least two values or a chosen one."""
    links_of_facets = []
    names = {
        facet: [facet_value.name for facet_value in facets.values[facet]]
        for facet in VocabularyField.values
    }
    coded_words = words_coded(user, names)
    for facet in FACETS:
        values = facets.values[facet]
        if not _is_choice(facet, values, facets.regions):
            continue
        links = [
            FacetLink(
                facet,
                value,
                _toggle_value(query, facet, value),
                f"facet-{facet}-{i}",
                coded_words[facet][i].shown if facet in coded_words else value.name,
            )
            for i, value in enumerate(values)
        ]
        links.sort(key=lambda link: not link.value.is_chosen)
        identifiers = [(v.name, v.value) for v in values] if facet == "scanner" else []
        links_of_facets.append(
            FacetLinks(_TITLES[facet], links[:SHOWN], links[SHOWN:], identifiers)
        )
    return links_of_facets


def chosen_links(facets: list[FacetLinks]) -> list[tuple[str, FacetLink]]:
    """Chosen values: the facet's title and a link that removes the value."""
    return [(links.title, link) for links in facets for link in links.shown if link.value.is_chosen]


def _is_choice(facet: str, values: tuple[FacetValue, ...], regions: int) -> bool:
    """True if a value is chosen, or there are several to choose from.

    Date ranges overlap: there is a choice if one of them lacks some of the regions.
    """
    if any(value.is_chosen for value in values):
        return True
    if facet == "date":
        return any(value.count != regions for value in values)
    return len(values) > 1


def _toggle_value(query: QueryDict, facet: str, value: FacetValue) -> str:
    changed = query.copy()
    for name in _FIELDS.get(facet, (facet,)):
        changed.pop(name, None)
    if not value.is_chosen:
        changed.update(_posted_fields(facet, value))
    return "?" + changed.urlencode()


def _posted_fields(facet: str, value: FacetValue) -> dict[str, str]:
    if facet != "date":
        return {facet: value.value}
    ends = {"since": value.since, "until": value.until}
    return {name: str(day) for name, day in ends.items() if day}
