"""Stored result of learning: metrics, and examples by ROI id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ml.index.metric_learning.comparison import FigureChange, LabelChange
from ml.index.metric_learning.dataset import RULE
from ml.index.metric_learning.training import LearningOutcome
from ml.types import JsonObject
from portal.model_training.selectors.training_data import MAX_REGIONS, TrainingData

VERDICT_RULE = (
    "Better means: the 95 % interval of the gain in {measure} over what the searches of the lab "
    "use, resampling the patients kept aside, is above zero."
)
MEASURES: Mapping[str, str] = {
    "map_at_10": "ranking of the nearest ten",
    "precision_at_10": "share of the nearest ten with the label",
    "first_right": "nearest has the label",
    "agreement": "agreement with judgements",
}


@dataclass(frozen=True, slots=True)
class RetrievalExample:
    """Held-out region and its nearest of other patients before and after, by ROI id."""

    roi: str
    gain: float
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainingSummary:
    """Summary of an encoder's training.

    Attributes:
        regions, patients: Training data.
        device: Device of the training.
        steps: Number of steps; 0 if the scheme has none.
        loss, held_out: Losses of some steps, evenly spaced, on training data and on held-out
            patients.
        stopped_early: The time limit was reached before the last step.
    """

    regions: int
    patients: int
    device: str
    steps: int
    loss: tuple[float, ...]
    held_out: tuple[float, ...]
    stopped_early: bool

    def as_json(self) -> JsonObject:
        """Convert to the JSON stored in ``Learning.training``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LearningResult:
    """Evaluation of a learned metric or encoder.

    Attributes:
        regions, labelled, patients, judgements: Numbers in the archive.
        labels: Number of labels learned from.
        learned_regions, learned_patients: Training data.
        test_patients: Number of held-out patients.
        split, rule: Split and criterion, in words fixed beforehand.
        chosen: Best model on the training patients; "identity" if nothing helped.
        judges_by: Measure of the criterion.
    """

    regions: int
    labelled: int
    patients: int
    judgements: int
    labels: int
    learned_regions: int
    learned_patients: int
    test_patients: int
    split: str
    rule: str
    chosen: str
    judges_by: str
    measures: tuple[FigureChange, ...]
    changes: tuple[LabelChange, ...]
    examples: tuple[RetrievalExample, ...]
    regions_most: int = MAX_REGIONS

    @property
    def is_identity(self) -> bool:
        """True if no map was better than the original vectors on the training patients."""
        return self.chosen == "identity"

    def as_json(self) -> JsonObject:
        """Convert to the JSON stored in ``Learning.result``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LearningResult:
        """Restore from the output of ``as_json``."""
        parts = {
            "measures": tuple(FigureChange(**entry) for entry in data["measures"]),
            "changes": tuple(LabelChange(**entry) for entry in data["changes"]),
            "examples": tuple(
                RetrievalExample(
                    entry["roi"], entry["gain"], tuple(entry["old"]), tuple(entry["new"])
                )
                for entry in data["examples"]
            ),
        }
        return cls(**{**data, **parts})


def learning_result(outcome: LearningOutcome, data_set: TrainingData) -> LearningResult:
    """Convert the outcome of learning to its stored form."""
    comparison, material = outcome.comparison, data_set.material
    return LearningResult(
        regions=len(data_set.rois),
        labelled=int((material.labels != "").sum()),
        patients=outcome.sufficiency.patients,
        judgements=len(material.judged),
        labels=len(outcome.sufficiency.labels),
        learned_regions=outcome.learned_regions,
        learned_patients=outcome.learned_patients,
        test_patients=comparison.test_patients,
        split=RULE,
        rule=VERDICT_RULE.format(measure=MEASURES[comparison.measure]),
        chosen=outcome.chosen,
        judges_by=comparison.measure,
        measures=comparison.measures,
        changes=tuple(
            LabelChange(**{**asdict(label), "label": data_set.labels.get(label.label, "")})
            for label in comparison.labels
        ),
        examples=tuple(
            RetrievalExample(
                str(data_set.rois[example.row]),
                example.gain,
                tuple(str(data_set.rois[row]) for row in example.old),
                tuple(str(data_set.rois[row]) for row in example.new),
            )
            for example in comparison.examples
        ),
    )
