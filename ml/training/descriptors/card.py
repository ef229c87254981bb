"""The figures of training in the cards of ``triplet``, ``cnn`` and ``graph``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ml.keypoints import load_descriptor
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.training.common.run import RunSummary
from ml.training.descriptors.validate import FAMILIES, validate
from ml.training.descriptors.views import KeypointStill


class DescriptorSummary(RunSummary):
    """What a training of a descriptor returns.

    ``stills`` it learned from, those ``held_out``, and the ``validation`` on these by family, see
    ``validate``; empty where none was held out.
    """

    stills: int
    held_out: int
    validation: dict[str, dict[str, float]]


SHARES = ("easy", "semi_hard", "hard")
_COLUMNS = {
    "precision": "NN precision",
    "nnt_precision": "NNT precision",
    "nnt_score": "NNT matching score",
}


def write_training(
    card: Path,
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    held_out: Sequence[KeypointStill],
) -> None:
    """Write the run's figures between the card's markers ``training``, SIFT's beside them.

    Raises:
        BadInputError: no such card, or it lacks the markers.
    """
    scores = {str(summary["name"]): summary["validation"]} if summary["validation"] else {}
    if scores:
        scores["sift"] = validate(load_descriptor("sift"), held_out)
    update_card(card, "training", training_text(summary, history, scores))


def training_text(
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> str:
    """The loss, the shares of triplets where there are some, the scores on held-out stills."""
    loss = history["loss"]
    parts = [
        f"{summary['name']} {summary['version']}, configuration {summary['train_config_hash']}:"
        f" {summary['stills']} stills to learn from, {summary['held_out']} held out;"
        f" {len(loss)} {'epochs' if 'easy' in history else 'steps'}, loss {_over(loss)}."
    ]
    if "easy" in history:
        parts.append(_shares(history))
    parts += [_scores(scores, key, title) for key, title in _COLUMNS.items() if scores]
    return "\n\n".join(parts)


def _over(values: Sequence[float]) -> str:
    """Means of the first and the last tenth."""
    if not values:
        return "none"
    tenth = max(1, len(values) // 10)
    first, last = (sum(part) / tenth for part in (values[:tenth], values[-tenth:]))
    return f"{first:.3g} (first tenth) to {last:.3g} (last tenth)"


def _shares(history: Mapping[str, Sequence[float]]) -> str:
    """Shares of triplets over training, at about ten epochs."""
    epochs = len(history["easy"])
    names = [p + s for p in ("", "held_out_") for s in SHARES if history.get(p + s)]
    shown = sorted({1, *range(max(1, epochs // 10), epochs + 1, max(1, epochs // 10)), epochs})
    rows = [[str(e), *(f"{history[n][e - 1]:.3f}" for n in names)] for e in shown]
    return markdown_table(["epoch", *(n.replace("_", " ") for n in names)], rows)


def _scores(scores: Mapping[str, Mapping[str, Mapping[str, float]]], key: str, title: str) -> str:
    families = (*FAMILIES, "all")
    rows = [[n, *(f"{s[f][key]:.4f}" for f in families)] for n, s in scores.items()]
    return markdown_table([title, *families], rows)
