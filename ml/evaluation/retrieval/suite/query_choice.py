"""Candidates for the query method of a slide search, and the rule that chooses among them.

A cell is a task as it is, or with its gallery recoloured; the score of a task is the mean of its
cells, and of a set the mean of its tasks. The loss of a candidate on a task is the best candidate's
score less its own. Among the candidates whose largest loss is within ``TOLERANCE`` of the smallest
one, that with the largest mean score over the sets is chosen. The search by distance is a
candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ml.evaluation.retrieval.suite.query_methods import BY_DISTANCE, QueryMethod
from ml.index.ranking.diffusion import DiffusionConfig

TOLERANCE = 0.01
"""Difference of largest losses that counts as none."""
EXPAND = 3
"""Neighbours of an expanded query."""
DIRECT = (1.0, 2.0, 4.0)
"""Direct shares."""
POWERS = (3.0, 10.0, 20.0, 40.0)
"""Exponents of the cosine in the direct share."""

Task = tuple[str, str]
"""Set and name."""


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """Scores of a candidate.

    Attributes:
        sets: by set. mean: over the sets.
        losses: by task, against the best candidate on it. worst: the largest of them.
    """

    sets: dict[str, float]
    mean: float
    losses: dict[Task, float]
    worst: float


@dataclass(frozen=True, slots=True)
class QueryChoice:
    """The chosen candidate, and the choices made without each set.

    Attributes:
        chosen: name. scores: by candidate.
        left_out: by set, the candidate chosen by the other sets, and its score on this set.
        cost: mean score of the chosen candidate, less that of the choices without each set.
    """

    chosen: str
    scores: dict[str, CandidateScore]
    left_out: dict[str, tuple[str, float]]
    cost: float


def candidates() -> dict[str, QueryMethod]:
    """Candidates by name; the first is the search by distance."""
    out = {"by distance": BY_DISTANCE, "expanded": QueryMethod(expand=EXPAND)}
    for power in POWERS:
        for direct in DIRECT:
            about = f"direct {direct:g}, power {power:g}"
            diffusion = DiffusionConfig(direct=direct, direct_power=power)
            diffused = QueryMethod(diffuse=True, diffusion=diffusion)
            out |= {
                f"diffused: {about}": diffused,
                f"expanded, diffused: {about}": replace(diffused, expand=EXPAND),
            }
    name = "expanded, diffused: direct 2, power 3, of the expanded query"
    diffusion = DiffusionConfig(direct=2.0, direct_power=3.0)
    out[name] = QueryMethod(EXPAND, diffuse=True, diffusion=diffusion, direct_expanded=True)
    return out


def choose_query(scores: Mapping[Task, Mapping[str, Sequence[float]]]) -> QueryChoice:
    """Apply the rule, with all sets and without each.

    Args:
        scores: of each task by candidate, one score a cell; two sets or more.
    """
    sets = list(dict.fromkeys(name for name, _ in scores))
    all_scores = _candidate_scores(scores)
    chosen = _best(all_scores)
    left_out = {}
    for left in sets:
        best = _best(_candidate_scores({task: s for task, s in scores.items() if task[0] != left}))
        left_out[left] = (best, all_scores[best].sets[left])
    honest = float(np.mean([score for _, score in left_out.values()]))
    return QueryChoice(chosen, all_scores, left_out, all_scores[chosen].mean - honest)


def _candidate_scores(
    scores: Mapping[Task, Mapping[str, Sequence[float]]],
) -> dict[str, CandidateScore]:
    means = {
        task: {name: float(np.mean(cells)) for name, cells in by_candidate.items()}
        for task, by_candidate in scores.items()
    }
    out = {}
    for name in next(iter(means.values())):
        of_set: dict[str, list[float]] = {}
        for (set_name, _), by_candidate in means.items():
            of_set.setdefault(set_name, []).append(by_candidate[name])
        sets = {set_name: float(np.mean(values)) for set_name, values in of_set.items()}
        losses = {task: max(of.values()) - of[name] for task, of in means.items()}
        mean = float(np.mean(list(sets.values())))
        out[name] = CandidateScore(sets, mean, losses, max(losses.values()))
    return out


def _best(scores: Mapping[str, CandidateScore]) -> str:
    """Name of the candidate that the rule chooses; of equals the first."""
    least = min(score.worst for score in scores.values())
    allowed = [name for name, score in scores.items() if score.worst <= least + TOLERANCE]
    return max(allowed, key=lambda name: scores[name].mean)
