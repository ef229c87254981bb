"""What a learning found, as it is kept: figures, and examples by the ids of ROIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ml.index.learning.archive import FromArchive
from ml.index.learning.comparison import FigureChange, LabelChange
from ml.index.learning.material import RULE
from ml.types import JsonObject
from portal.retrieval.selectors.learning.archive import REGIONS_MOST, LabMaterial

VERDICT_RULE = (
    "Better means: the 95 % interval of the gain in {measure} over what the searches of the lab "
    "use, with the patients kept aside drawn anew, lies above zero."
)
MEASURES: Mapping[str, str] = {
    "map_at_10": "mAP@10",
    "precision_at_10": "precision@10",
    "first_right": "nearest has the label",
    "agreement": "agreement with judgements",
}


@dataclass(frozen=True, slots=True)
class ExampleFound:
    """A region kept aside, and its nearest of other patients before and after, by ids of ROIs."""

    roi: str
    gain: float
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainingTold:
    """How an encoder was trained.

    Attributes:
        regions, patients: whose pixels it learned from. device: that it learned on.
        steps: taken; 0 if the scheme takes none. loss, held_out: of some of them, spread
            evenly, on what is learned from and on patients kept aside.
        stopped_early: the hours were over first.
    """

    regions: int
    patients: int
    device: str
    steps: int
    loss: tuple[float, ...]
    held_out: tuple[float, ...]
    stopped_early: bool

    def as_json(self) -> JsonObject:
        """As ``Learning.training`` holds it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LearningResult:
    """The card of what was learned.

    Attributes:
        regions, labelled, patients, judgements: of the archive. labels: that were learned from.
        learned_regions, learned_patients: learned from. kept_aside: patients.
        split, rule: how it was split and judged, in words written beforehand.
        chosen: of what was tried, by the patients learned from; "identity" where nothing helped.
        judges_by: the measure that the verdict goes by.
    """

    regions: int
    labelled: int
    patients: int
    judgements: int
    labels: int
    learned_regions: int
    learned_patients: int
    kept_aside: int
    split: str
    rule: str
    chosen: str
    judges_by: str
    measures: tuple[FigureChange, ...]
    changes: tuple[LabelChange, ...]
    examples: tuple[ExampleFound, ...]
    regions_most: int = REGIONS_MOST

    @property
    def is_identity(self) -> bool:
        """No map beat the vectors as they are on the patients that were learned from."""
        return self.chosen == "identity"

    def as_json(self) -> JsonObject:
        """As ``Learning.result`` holds it."""
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> LearningResult:
        """What ``as_json`` gave."""
        parts = {
            "measures": tuple(FigureChange(**one) for one in said["measures"]),
            "changes": tuple(LabelChange(**one) for one in said["changes"]),
            "examples": tuple(
                ExampleFound(one["roi"], one["gain"], tuple(one["old"]), tuple(one["new"]))
                for one in said["examples"]
            ),
        }
        return cls(**{**said, **parts})


def learning_result(found: FromArchive, of: LabMaterial) -> LearningResult:
    """What is kept of what was learned from a lab's material."""
    comparison, material = found.comparison, of.material
    return LearningResult(
        regions=len(of.rois),
        labelled=int((material.labels != "").sum()),
        patients=found.enough.patients,
        judgements=len(material.judged),
        labels=len(found.enough.labels),
        learned_regions=found.learned_regions,
        learned_patients=found.learned_patients,
        kept_aside=comparison.kept_aside,
        split=RULE,
        rule=VERDICT_RULE.format(measure=MEASURES[comparison.judges_by]),
        chosen=found.chosen,
        judges_by=comparison.judges_by,
        measures=comparison.measures,
        changes=tuple(
            LabelChange(**{**asdict(one), "label": of.labels.get(one.label, "")})
            for one in comparison.labels
        ),
        examples=tuple(
            ExampleFound(
                str(of.rois[one.row]),
                one.gain,
                tuple(str(of.rois[row]) for row in one.old),
                tuple(str(of.rois[row]) for row in one.new),
            )
            for one in comparison.examples
        ),
    )
