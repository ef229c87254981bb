"""Reports, their content, and changes since."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Self, TypedDict

from django.db.models import QuerySet

from ml.types import JsonObject
from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.labs.models import User
from portal.search.models import RegionRole, Report, ReportInterpretation, ReportRegion
from portal.search.selectors.hits import Hit, closer_than
from portal.search.selectors.similar_cases import SimilarResult

PICTURES_KIND = "report_pictures"
_BAR_SHARE = 0.3  # largest length of the scale bar, as a share of the picture's width


class _JsonRecord:
    """Dataclass stored as JSON."""

    __slots__ = ()

    def as_json(self) -> JsonObject:
        """Convert to the JSON stored in the row."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Restore from the output of ``as_json``; unknown fields are ignored."""
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in data.items() if name in names})


@dataclass(frozen=True, slots=True)
class ReportRegionContent(_JsonRecord):
    """Region as stored in a report.

    Attributes:
        label: Name and colour.
        width_um: Width of the picture; None if the pixel size is unknown.
        also: Other regions of its case that were found with it.
        scale_unknown: The search assumed the pixel size of its image.
    """

    roi: str
    version: int
    name: str
    label: tuple[str, str] | None
    review_state: str
    accession: str
    organ: str
    diagnosis: str
    image: str
    width_um: float | None = None
    distance: float | None = None
    p_value: float | None = None
    is_close: bool | None = None
    also: int = 0
    stain: str = ""
    scale_unknown: bool = False

    @property
    def closer_than(self) -> str:
        """Text of ``Hit.closer_than``."""
        return closer_than(self.p_value)


class StoredOptions(TypedDict):
    """Search options as JSON: ``SimilarOptions`` without marks and unset options."""

    k: int
    exclude_same_patient: bool
    expand: int
    diffuse: bool
    by_case: bool
    filters: dict[str, bool | str]


class ReportVote(TypedDict):
    """Evidence for a value; ``base`` as in ``Vote``."""

    name: str
    weight: float
    cases: int
    regions: int
    base: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ReportContent(_JsonRecord):
    """Query, options and evidence of a search, as stored in a report.

    Attributes:
        facts: Title and text of each fact about the query.
        filters: Title and text of each filter.
        options: ``SimilarOptions`` without marks, which are regions of the report.
        encoder: Name, version, hash.
        index: Version (0: none), rows in the file and newer rows.
        searched: Numbers of searched regions and cases; None if they were not counted.
        votes: Votes for labels and diagnoses, heaviest first.
        hits: Original number of hits; fewer rows remain after a patient was erased.
        scale_unknown: The pixel size of the query was assumed.
    """

    facts: list[tuple[str, str]]
    filters: list[tuple[str, str]]
    options: StoredOptions
    encoder: tuple[str, str, str]
    index: tuple[int, int, int]
    searched: tuple[int, int] | None
    leaves_patient_out: bool
    nothing_close: bool
    refined_by: int
    expanded_by: int
    is_diffused: bool
    votes: dict[str, list[ReportVote]]
    hits: int
    width_um: float | None = None
    scale_unknown: bool = False

    @property
    def tallies(self) -> list[tuple[str, str, list[ReportVote]]]:
        """Title, key in ``votes``, and votes of each question with votes."""
        titles = (("Labels", "label"), ("Diagnoses", "diagnosis"))
        return [(title, key, self.votes[key]) for title, key in titles if self.votes[key]]

    @property
    def order(self) -> str:
        """Order of the hits, in words."""
        if self.refined_by:
            marks = "1 mark" if self.refined_by == 1 else f"{self.refined_by} marks"
            return f"by the query and {marks}"
        ways = []
        if self.expanded_by:
            ways.append(f"together with its {self.expanded_by} nearest")
        if self.is_diffused:
            ways.append("through similar regions in between")
        return " and ".join(ways) or "by distance alone"


def bar_length(width_um: float) -> float:
    """Length of a picture's scale bar: the largest of 1, 2, 5, 10, ... um that fits."""
    max_um = width_um * _BAR_SHARE
    power = 10.0 ** math.floor(math.log10(max_um))
    return next(step * power for step in (5, 2, 1) if step * power <= max_um * (1 + 1e-9))


def length_text(length_um: float) -> str:
    """Length for people: "200 µm", "1 mm"."""
    return f"{length_um / 1000:g} mm" if length_um >= 1000 else f"{length_um:g} µm"


class Change(StrEnum):
    """Change of a hit between a report and the repeated search."""

    SAME = "same"
    MOVED = "moved"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ChangedHit:
    """Hit of a report, of the present search, or of both.

    Attributes:
        before, now: Ranks.
        region: Region of the report.
        hit: Hit of the present search.
    """

    change: Change
    before: int | None
    now: int | None
    region: ReportRegion | None
    hit: Hit | None


@dataclass(frozen=True, slots=True)
class Changes:
    """Difference between a report and the repeated search.

    Attributes:
        hits: In the order of the present answer, followed by lost hits.
        encoder: Names of the encoder then and now; None if unchanged.
        index: Index then and now; None if unchanged.
        erased: Hits of the report that were erased with their patient.
    """

    hits: tuple[ChangedHit, ...]
    encoder: tuple[str, str] | None
    index: tuple[int, int] | None
    erased: int

    def count(self, change: str) -> int:
        """Number of hits with this change."""
        return sum(hit.change == change for hit in self.hits)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Number of hits for each change."""
        return [(str(change), self.count(change)) for change in Change]


def report_list(user: User, *, case_id: uuid.UUID | None = None) -> QuerySet[Report]:
    """Reports of the person's labs, newest first, without their pictures.

    Args:
        case_id: Case of the query; None for all.
    """
    rows = Report.objects.owned_by(user).select_related("lab", "user", "canvas__case")
    if case_id is not None:
        rows = rows.filter(canvas__case=case_id)
    reports: QuerySet[Report] = rows.defer("picture", "canvas__levels")
    return reports


def report_get(user: User, report_id: uuid.UUID) -> Report:
    """A report; ``NotFoundError`` if it is not visible."""
    rows = Report.objects.owned_by(user).select_related(
        "lab", "user", "canvas__case", "roi__canvas__case", "query__canvas__case"
    )
    report: Report | None = rows.filter(pk=report_id).first()
    if report is None:
        raise NotFoundError("There is no such report. It may have been deleted.")
    return report


def rois_to_show(ids: list[uuid.UUID]) -> list[Roi]:
    """For a task: live ROIs with the data for their pictures."""
    rows = Roi.objects.live().filter(pk__in=ids).select_related("canvas", "label").order_by("pk")
    return list(rows)


def report_regions(
    user: User, report: Report, *, role: str = RegionRole.HIT
) -> QuerySet[ReportRegion]:
    """Visible regions of a report, best first, without their pictures."""
    rows: QuerySet[ReportRegion] = (
        ReportRegion.objects.owned_by(user)
        .filter(report=report, role=role)
        .select_related("roi", "canvas__case")
        .defer("picture", "canvas__levels", "roi__geometry", "roi__foreign")
    )
    return rows


def report_interpretations(user: User, report: Report) -> QuerySet[ReportInterpretation]:
    """Visible versions of a report's interpretation, newest first."""
    rows: QuerySet[ReportInterpretation] = ReportInterpretation.objects.owned_by(user)
    return rows.filter(report=report).order_by("-version")


def report_interpretation(user: User, report: Report) -> ReportInterpretation | None:
    """Present interpretation of a report; None if there is none or it was withdrawn."""
    interpretation = report_interpretations(user, report).first()
    return interpretation if interpretation is not None and interpretation.text else None


def report_marks(user: User, report: Report) -> str:
    """Numbers of visible liked and unliked examples of the report, as text."""
    roles = (RegionRole.LIKED, RegionRole.UNLIKED)
    liked, unliked = (report_regions(user, report, role=role).count() for role in roles)
    return f"{liked} alike, {unliked} not alike" if liked or unliked else ""


def report_picture(user: User, report: Report, rank: int) -> bytes:
    """JPEG of a hit, or of the query for rank 0.

    Raises:
        NotFoundError: There is no picture.
    """
    picture: bytes | memoryview | None = report.picture
    if rank:
        rows = ReportRegion.objects.owned_by(user).filter(report=report, role=RegionRole.HIT)
        picture = rows.filter(rank=rank).values_list("picture", flat=True).first()
    if not picture:
        raise NotFoundError("The report has no such picture.")
    return bytes(picture)


def report_changes(
    report: Report, before: Sequence[ReportRegion], result: SimilarResult
) -> Changes:
    """Compare a report with the same search now.

    Args:
        before: Remaining hits of the report.
    """
    content = ReportContent.from_json(report.content)
    regions = {str(region.content["roi"]): region for region in before}
    changed = [_changed_hit(hit, regions.pop(str(hit.roi.pk), None)) for hit in result.hits]
    absent = [
        ChangedHit(Change.GONE, known_hit.rank, None, known_hit, None)
        for known_hit in regions.values()
    ]
    encoder, index = result.query.encoder, result.index
    now = (encoder.name, encoder.version, encoder.config_hash)
    is_same = tuple(content.encoder) == now
    earlier_encoder = f"{content.encoder[0]} {content.encoder[1]}"
    return Changes(
        (*changed, *absent),
        None if is_same else (earlier_encoder, str(encoder)),
        None if content.index[0] == index.version else (content.index[0], index.version),
        content.hits - len(before),
    )


def _changed_hit(hit: Hit, region: ReportRegion | None) -> ChangedHit:
    if region is None:
        return ChangedHit(Change.NEW, None, hit.rank, None, hit)
    change = Change.SAME if region.rank == hit.rank else Change.MOVED
    return ChangedHit(change, region.rank, hit.rank, region, hit)
