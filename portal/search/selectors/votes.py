"""Votes of the hits for labels and diagnoses, weighted by distance, one vote per case.

Distance-weighted nearest neighbours: a hit twice as far has half the weight. The hits of a case
share the weight of its nearest one, so that a case with many regions has one vote. Only close hits
vote; without a calibration, all do.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from portal.annotations.models import Label
from portal.search.selectors.facets import Facets
from portal.search.selectors.hits import Hit

_MIN_SHARE = 0.1
"""Smallest distance used for weights, as a share of the farthest hit's distance, so that a copy of
the region does not outweigh all other hits."""


@dataclass(frozen=True, slots=True)
class Vote:
    """Votes for one value.

    Attributes:
        value: The value as a filter takes it.
        name: Display name.
        label: The label, for votes on labels.
        weight: Share of all votes, 0 to 1.
        cases, regions: Numbers of voters with this value.
        base: Cases of the searched set with this value, and all its cases; None if not counted.
    """

    value: str
    name: str
    label: Label | None
    weight: float
    cases: int
    regions: int
    base: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class VoteTally:
    """Votes on one question.

    Attributes:
        votes: Heaviest first.
        cases: Number of voting cases.
        silent: Close hits without a value.
        dissent: Nearest hit that differs from ``votes[0]``; None if all agree.
    """

    votes: tuple[Vote, ...]
    cases: int
    silent: int
    dissent: Hit | None


@dataclass(frozen=True, slots=True)
class _Voice:
    hit: Hit
    weight: float
    value: str
    name: str
    label: Label | None


def label_tally(hits: Sequence[Hit], facets: Facets | None = None) -> VoteTally:
    """Votes of the hits for labels."""

    def value_of(hit: Hit) -> tuple[str, str, Label | None] | None:
        label = hit.roi.label
        return (str(label.pk), label.name, label) if label else None

    return _tally("label", hits, value_of, facets)


def diagnosis_tally(hits: Sequence[Hit], facets: Facets | None = None) -> VoteTally:
    """Votes of the hits' cases for diagnoses, ignoring case of letters."""

    def value_of(hit: Hit) -> tuple[str, str, Label | None] | None:
        text = hit.roi.canvas.case.diagnosis
        return (text.lower(), text, None) if text else None

    return _tally("diagnosis", hits, value_of, facets)


def _tally(
    facet: str,
    hits: Sequence[Hit],
    value_of: Callable[[Hit], tuple[str, str, Label | None] | None],
    facets: Facets | None,
) -> VoteTally:
    voters = [hit for hit in hits if hit.is_close is not False]
    valued = [(hit, value) for hit in voters if (value := value_of(hit))]
    weights = _weights([hit for hit, _ in valued])
    voices = [_Voice(hit, weights[hit.embedding_id], *value) for hit, value in valued]
    grouped: dict[str, list[_Voice]] = defaultdict(list)
    for voice in voices:
        grouped[voice.value].append(voice)
    total = sum(voice.weight for voice in voices)
    votes = sorted(
        (_vote(facet, group, total, facets) for group in grouped.values()),
        key=lambda vote: (-vote.weight, -vote.regions, vote.name.lower()),
    )
    other_hits = [voice.hit for voice in voices if voice.value != votes[0].value]
    dissent = min(other_hits, key=lambda hit: hit.distance, default=None)
    return VoteTally(tuple(votes), len(_cases(voices)), len(voters) - len(valued), dissent)


def _vote(facet: str, group: list[_Voice], total: float, facets: Facets | None) -> Vote:
    first = group[0]
    return Vote(
        first.value,
        first.name,
        first.label,
        weight=sum(voice.weight for voice in group) / total,
        cases=len(_cases(group)),
        regions=len(group),
        base=facets.base_rate(facet, first.value) if facets else None,
    )


def _weights(hits: Sequence[Hit]) -> dict[int, float]:
    """Positive weight of each hit by its embedding; hits of a case sum to the weight of its
    nearest."""
    farthest = max((hit.distance for hit in hits), default=0.0) or 1.0
    plain = {hit.embedding_id: 1 / max(hit.distance / farthest, _MIN_SHARE) for hit in hits}
    by_case: dict[uuid.UUID, list[int]] = defaultdict(list)
    for hit in hits:
        by_case[hit.roi.canvas.case_id].append(hit.embedding_id)
    weight_of: dict[int, float] = {}
    for ids in by_case.values():
        largest, total = max(plain[pk] for pk in ids), sum(plain[pk] for pk in ids)
        weight_of |= {pk: plain[pk] * largest / total for pk in ids}
    return weight_of


def _cases(voices: Iterable[_Voice]) -> set[uuid.UUID]:
    return {voice.hit.roi.canvas.case_id for voice in voices}
