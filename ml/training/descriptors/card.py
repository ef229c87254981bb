"""The figures of training in the cards of ``triplet``, ``cnn`` and ``graph``."""

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
    """What a training of a descriptor returns.

    ``stills`` it learned from, those ``held_out``, and the ``validation`` on these by family, see
    ``validate``; empty if none was held out.
    """

    stills: int
    held_out: int
    validation: dict[str, dict[str, float]]


OfGraph = tuple[float | None, Mapping[str, Mapping[str, float]]]
"""What is reported of a graph network only, see ``write_training``."""

SHARES = ("easy", "semi_hard", "hard")


def write_training(
    card: Path,
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    held_out: Sequence[KeypointStill],
    *,
    of_graph: OfGraph = (None, {}),
    section: str = "training",
) -> str:
    """Write the run's figures between the markers of a section, SIFT's beside them.

    Args:
        of_graph: share of the greatest entropy that its attention has, scores by family with its
            positions shuffled.
    Returns:
        What was written.
    Raises:
        BadInputError: no such card, or it lacks the markers.
    """
    scores: dict[str, Mapping[str, Mapping[str, float]]] = {}
    if summary["validation"]:
        scores[str(summary["name"])] = summary["validation"]
    entropy_share, shuffled = of_graph
    if shuffled:
        scores[f"{summary['name']}, positions shuffled"] = shuffled
    if scores:
        scores["sift"] = validate(load_descriptor("sift"), held_out)
    text = training_text(summary, history, scores, entropy_share=entropy_share)
    update_card(card, section, text)
    return text


def training_text(
    summary: DescriptorSummary,
    history: Mapping[str, Sequence[float]],
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
    *,
    entropy_share: float | None = None,
) -> str:
    """The loss, the share of easy triplets where there are some, the scores on held-out stills."""
    loss = history["loss"]
    parts = [
        f"{summary['name']} {summary['version']}, configuration {summary['train_config_hash']}:"
        f" {summary['stills']} stills to learn from, {summary['held_out']} held out;"
        f" {_length(summary, history)}, loss {_over(loss)}."
    ]
    if "easy" in history:
        parts[0] += f" {_easy(history)}"
    if entropy_share is not None:
        parts[0] += (
            " Entropy of the attention over held-out stills, as a share of the greatest:"
            f" {entropy_share:.4f}."
        )
    if scores:
        parts.append(_scores(scores))
    return "\n\n".join(parts)


def _length(summary: DescriptorSummary, history: Mapping[str, Sequence[float]]) -> str:
    """Steps or epochs; of epochs that were not all taken also how many triplets they are."""
    taken = len(history["loss"])
    if "easy" not in history:
        return f"{taken} steps"
    config = summary["train_config"]
    if taken >= config["epochs"]:
        return f"{taken} epochs"
    seen, asked = (count * config["triplets"] for count in (taken, config["epochs"]))
    return f"{taken} of {config['epochs']} epochs, {seen:,} of {asked:,} triplets"


def _over(values: Sequence[float]) -> str:
    """Means of the first and the last tenth."""
    if not values:
        return "none"
    tenth = max(1, len(values) // 10)
    first, last = (sum(part) / tenth for part in (values[:tenth], values[-tenth:]))
    return f"{first:.3g} (first tenth) to {last:.3g} (last tenth)"


def _easy(history: Mapping[str, Sequence[float]]) -> str:
    """How many triplets cost nothing, of the held-out operations where there are some."""
    shares = history.get("held_out_easy") or history["easy"]
    return (
        f"Share of easy triplets: {shares[0]:.3f} in the first epoch, {shares[-1]:.3f} in the last."
    )


def _scores(scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """NN precision by family; over all families also those under the threshold."""
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
