"""Figures and outlines for display."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import shapely

from portal.annotations.formats.types import NO_LABEL
from portal.annotations.models import Label
from portal.labs.models import User
from portal.reader_studies.agreement import Finding, LabelTally, PairAgreement
from portal.reader_studies.models import Choice, Decision, Study
from portal.reader_studies.selectors.results import ImageResult
from portal.review.selectors.live import initials_of

DRAWING = 320.0  # units of the longer side of an outline's picture
MARGIN = 0.08  # of it, around the outlines
FINE = 0.5  # units; smaller details are dropped
STATES = {"agreed": "Agreed", "label": "Different label", "missing": "Not drawn by all"}
MEASURES = (("iou", "IoU"), ("dice", "Dice"), ("kappa", "Kappa"))


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """A pair of readers and a label; None: regions without one."""

    pair: str
    initials: str
    label: Label | None
    tally: LabelTally
    kappa_of_labels: float | None


@dataclass(frozen=True, slots=True)
class ShownRegion:
    """A reader's outline in the picture."""

    reader: User
    label: str
    color: str
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding with its picture; ``labels`` are those that the readers chose."""

    id: uuid.UUID
    state: str
    state_text: str
    iou: float | None
    regions: list[ShownRegion]
    labels: list[Label]
    width: float
    height: float
    roi: uuid.UUID
    decision: Decision | None

    @property
    def is_open(self) -> bool:
        """Return whether the finding is undecided."""
        return self.decision is None

    @property
    def decided(self) -> str:
        """The decision as text."""
        return Choice(self.decision.choice).label if self.decision else ""


def agreement_rows(
    pairs: Mapping[tuple[uuid.UUID, uuid.UUID], PairAgreement],
    readers: Sequence[User],
    labels: Mapping[str, Label],
) -> list[AgreementRow]:
    """Rows for each pair and label."""
    names = {reader.pk: str(reader) for reader in readers}
    return [
        AgreementRow(
            f"{names.get(a, '?')} and {names.get(b, '?')}",
            f"{initials_of(names.get(a, '?'))} / {initials_of(names.get(b, '?'))}",
            labels.get(label),
            tally,
            agreement.kappa_of_labels,
        )
        for (a, b), agreement in pairs.items()
        for label, tally in agreement.labels.items()
    ]


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the plot; ``width`` in per cent, ``y`` in units of the plot."""

    name: str
    color: str
    value: float | None
    width: float
    y: int


@dataclass(frozen=True, slots=True)
class BarPlot:
    """A measure, with a bar for each pair and label."""

    name: str
    lines: list[Bar]
    height: int


_BAR_HEIGHT = 26  # a line of text above the bar itself


def bars(
    pairs: Mapping[tuple[uuid.UUID, uuid.UUID], PairAgreement],
    readers: Sequence[User],
    labels: Mapping[str, Label],
) -> list[BarPlot]:
    """Plots of each measure; values below chance have no bar."""
    rows = agreement_rows(pairs, readers, labels)
    plots = []
    for key, name in MEASURES:
        lines = [
            Bar(
                name=f"{row.label.name if row.label else NO_LABEL} · {row.initials}",
                color=row.label.color if row.label else "",
                value=value,
                width=round(100 * max(0.0, value or 0.0), 1),
                y=_BAR_HEIGHT * k,
            )
            for k, row in enumerate(rows)
            for value in [getattr(row.tally, key)]
        ]
        plots.append(BarPlot(name, lines, _BAR_HEIGHT * len(lines)))
    return plots if rows else []


def findings_shown(
    study: Study, result: ImageResult, labels: Mapping[str, Label]
) -> list[ShownFinding]:
    """Findings for display, with their decisions."""
    people = {user.pk: user for user in User.objects.filter(pk__in=result.readers)}
    rows = Decision.objects.filter(study=study, canvas=result.canvas)
    decisions = {row.finding: row for row in rows.select_related("decided_by")}
    return [
        _shown_finding(finding, result, people, labels, decisions.get(finding.id))
        for finding in result.findings
    ]


def _shown_finding(
    finding: Finding,
    result: ImageResult,
    people: Mapping[uuid.UUID, User],
    labels: Mapping[str, Label],
    decision: Decision | None,
) -> ShownFinding:
    outlines = [region.outline for _, region in finding.regions]
    left, top, right, bottom = shapely.total_bounds(outlines)
    longer = max(right - left, bottom - top, 1e-6)
    scale = DRAWING / longer
    pad = MARGIN * DRAWING
    regions = []
    for number, (k, region) in enumerate(finding.regions):
        placed = shapely.transform(
            region.outline,
            lambda xy: (xy - (left, top)) * scale + pad,
        )
        label = labels.get(region.label)
        regions.append(
            ShownRegion(
                reader=people[result.readers[k]],
                label=label.name if label else NO_LABEL,
                color=label.color if label else "",
                path=_path(placed.simplify(FINE)),
                number=number + 1,
            )
        )
    chosen = {region.label for _, region in finding.regions}
    return ShownFinding(
        id=finding.id,
        state=finding.state,
        state_text=STATES[finding.state],
        iou=finding.iou,
        regions=regions,
        labels=[labels[label_id] for label_id in sorted(chosen) if label_id in labels],
        width=(right - left) * scale + 2 * pad,
        height=(bottom - top) * scale + 2 * pad,
        roi=finding.regions[0][1].roi,
        decision=decision,
    )


def _path(outline: shapely.geometry.base.BaseGeometry) -> str:
    """Outline as an SVG path; holes rely on the even-odd rule."""
    parts = []
    for polygon in shapely.get_parts(outline):
        if polygon.geom_type != "Polygon":
            continue
        for ring in (polygon.exterior, *polygon.interiors):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in ring.coords)
            parts.append(f"M{points}Z")
    return "".join(parts)
