"""Figures of training in the cards of ``triplet``, ``cnn`` and ``graph``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ml.keypoints import load_descriptor
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.training.common.run import RunSummary
from ml.training.descriptors.validate import FAMILIES, NNT_FIGURES, validate
from ml.training.descriptors.views import KeypointStill


class DescriptorSummary(RunSummary):
    """Result of a descriptor training.

    Numbers of stills learned from and held out, and the ``validation`` on the latter, see
    ``validate``; empty if none was held out.
    """

    stills: int
    held_out: int
    validation: dict[str, dict[str, float]]


SHARES = ("easy", "semi_hard", "hard")


def write_training(
    card: Path,
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    held_out: Sequence[KeypointStill],
    *,
    section: str = "training",
) -> str:
    """Write the run's figures between the markers of a section, with SIFT's for comparison.

    Returns:
        The text.
    Raises:
        BadInputError: no such card, or it lacks the markers.
    """
    scores: dict[str, Mapping[str, Mapping[str, float]]] = {}
    if summary["validation"]:
        scores[str(summary["name"])] = summary["validation"]
        scores["sift"] = validate(load_descriptor("sift"), held_out)
    text = training_text(summary, history, scores)
    update_card(card, section, text)
    return text


def training_text(
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> str:
    """Markdown of the loss, the share of easy triplets if any, and the held-out scores."""
    loss = history["loss"]
    parts = [
        f"{summary['name']} {summary['version']}, configuration {summary['train_config_hash']}:"
        f" {summary['stills']} stills to learn from, {summary['held_out']} held out;"
        f" {_length(summary, history)}, loss {_first_and_last(loss)}."
    ]
    if "easy" in history:
        parts[0] += f" {_easy(history)}"
    if scores:
        parts.append(_scores(scores))
    return "\n\n".join(parts)


def _length(summary: DescriptorSummary, history: Mapping[str, Sequence[float]]) -> str:
    """Number of steps or epochs; of an incomplete run also that of triplets."""
    step_count = len(history["loss"])
    if "easy" not in history:
        return f"{step_count} steps"
    config = summary["train_config"]
    if step_count >= config["epochs"]:
        return f"{step_count} epochs"
    trained, planned = (count * config["triplets"] for count in (step_count, config["epochs"]))
    return f"{step_count} of {config['epochs']} epochs, {trained:,} of {planned:,} triplets"


def _first_and_last(values: Sequence[float]) -> str:
    """Text with the means of the first and the last tenth."""
    if not values:
        return "none"
    tenth = max(1, len(values) // 10)
    first, last = (sum(part) / tenth for part in (values[:tenth], values[-tenth:]))
    return f"{first:.3g} (first tenth) to {last:.3g} (last tenth)"


def _easy(history: Mapping[str, Sequence[float]]) -> str:
    """Sentence on the share of triplets with zero loss, of held-out operations if there are any."""
    shares = history.get("held_out_easy") or history["easy"]
    return (
        f"Share of easy triplets: {shares[0]:.3f} in the first epoch, {shares[-1]:.3f} in the last."
    )


def _scores(scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Table of NN precision by family, and of the thresholded figures over all families."""
    families = (*FAMILIES, "all")
    rows = [
        [
            name,
            *(f"{by_family[family]['precision']:.4f}" for family in families),
            *(f"{by_family['all'][key]:.4f}" for key in NNT_FIGURES),
        ]
        for name, by_family in scores.items()
    ]
    return markdown_table(["NN precision", *families, *NNT_FIGURES.values()], rows)
