"""Rule that chooses among encoders, and the cost of choosing.

A cell is a task as it is, or with its gallery recoloured; the margin of a cell is the encoder's
score less the best baseline's in it; of a set, the mean of its cells. The largest mean margin over
the sets is chosen, among those whose worst set is not below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Cell = tuple[str, str, str]
"""Set, task, condition."""
Cells = Mapping[Cell, Mapping[str, float]]
"""Scores of each method, by cell."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Margin of an encoder over the baselines.

    Attributes:
        sets: margin of each set.
        mean: over the sets.
        worst: the least of them.
    """

    sets: dict[str, float]
    mean: float
    worst: float

    @property
    def passes(self) -> bool:
        """Return whether the rule allows it to be chosen."""
        return self.worst >= 0


@dataclass(frozen=True, slots=True)
class ChoiceWithout:
    """The choice made without one set.

    Attributes:
        chosen: encoder chosen by the other sets.
        margin: its margin on the set left out.
        best: best encoder on the set left out.
        best_margin: its margin.
    """

    chosen: str
    margin: float
    best: str
    best_margin: float


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """The chosen encoder, and the optimism of choices of this kind.

    Attributes:
        chosen: name.
        passes: whether its worst set is not below the best baseline.
        margins: of each encoder.
        left_out: by set.
        cost: mean margin of the chosen encoder, less that of the choices without each set.
    """

    chosen: str
    passes: bool
    margins: dict[str, Margin]
    left_out: dict[str, ChoiceWithout]
    cost: float | None


def margins_of(
    cells: Cells, encoders: Sequence[str], baselines: Sequence[str]
) -> dict[str, Margin]:
    """The margin of each encoder over the best baseline of each cell."""
    names = list(dict.fromkeys(name for name, _, _ in cells))
    out = {}
    for encoder in encoders:
        of_set: dict[str, list[float]] = {name: [] for name in names}
        for (name, _, _), scores in cells.items():
            of_set[name].append(scores[encoder] - max(scores[b] for b in baselines))
        sets = {name: float(np.mean(values)) for name, values in of_set.items()}
        out[encoder] = _margin(sets)
    return out


def choose(margins: Mapping[str, Margin]) -> SuiteChoice:
    """Apply the rule, with all sets and without each.

    Args:
        margins: of each encoder, over the same sets; one encoder or more.
    """
    chosen = _best(margins)
    sets = list(margins[chosen].sets)
    left_out = {name: _choice_without(margins, name) for name in sets} if len(sets) > 1 else {}
    honest = [choice.margin for choice in left_out.values()]
    return SuiteChoice(
        chosen=chosen,
        passes=margins[chosen].passes,
        margins=dict(margins),
        left_out=left_out,
        cost=margins[chosen].mean - float(np.mean(honest)) if honest else None,
    )


def _best(margins: Mapping[str, Margin]) -> str:
    """Name of the best encoder; of equals the first."""
    allowed = {name: m for name, m in margins.items() if m.passes} or margins
    return max(allowed, key=lambda name: allowed[name].mean)


def _choice_without(margins: Mapping[str, Margin], name: str) -> ChoiceWithout:
    other_margins = {
        encoder: _margin({key: value for key, value in m.sets.items() if key != name})
        for encoder, m in margins.items()
    }
    chosen = _best(other_margins)
    best = max(margins, key=lambda encoder: margins[encoder].sets[name])
    return ChoiceWithout(chosen, margins[chosen].sets[name], best, margins[best].sets[name])


def _margin(sets: dict[str, float]) -> Margin:
    values = list(sets.values())
    return Margin(sets, float(np.mean(values)), min(values))
