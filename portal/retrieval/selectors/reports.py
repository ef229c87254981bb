"""Reports: answers that were frozen, who may read them, and what has changed since."""

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
from portal.retrieval.models import RegionRole, Report, ReportRegion
from portal.retrieval.selectors.hits import Hit, closer_than
from portal.retrieval.selectors.search import SimilarResult

PICTURES_KIND = "report_pictures"
_BAR_SHARE = 0.3  # of a picture's width, at most, is its scale bar


class _Kept:
    """A dataclass that is kept as JSON."""

    __slots__ = ()

    def as_json(self) -> JsonObject:
        """As the row holds it."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def of_json(cls, said: JsonObject) -> Self:
        """What ``as_json`` gave; what a later version no longer knows is passed over."""
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in said.items() if name in known})


@dataclass(frozen=True, slots=True)
class FrozenRegion(_Kept):
    """What a report says of a region.

    Attributes:
        label: its name and colour. width_um: of the picture; None if the pixel size is unknown.
        also: other regions of its case that were found with it. scale_unknown: the search assumed
            the pixel size of its image.
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
        """As ``Hit.closer_than``."""
        return closer_than(self.p_value)


class KeptOptions(TypedDict):
    """How a search was asked, as JSON: ``SimilarOptions`` less marks and what is not asked for."""

    k: int
    exclude_same_patient: bool
    expand: int
    diffuse: bool
    by_case: bool
    filters: dict[str, bool | str]


class FrozenVote(TypedDict):
    """What spoke for a value; ``base``: as of a ``Vote``."""

    name: str
    weight: float
    cases: int
    regions: int
    base: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Frozen(_Kept):
    """How a search was asked, and what it went by.

    Attributes:
        facts: of what was searched with, as title and text. filters: what narrowed it, likewise.
        options: as ``SimilarOptions`` has them, except for marks, which are regions of the report.
        encoder: name, version, hash. index: its version (0: none), rows in the file and newer.
        searched: regions and cases that were looked into; None if they were not counted.
        votes: of labels and of diagnoses, heaviest first.
        hits: how many there were; fewer rows are left where some went with their patient.
        scale_unknown: the pixel size of what was searched with was assumed.
    """

    facts: list[tuple[str, str]]
    filters: list[tuple[str, str]]
    options: KeptOptions
    encoder: tuple[str, str, str]
    index: tuple[int, int, int]
    searched: tuple[int, int] | None
    leaves_patient_out: bool
    nothing_close: bool
    refined_by: int
    expanded_by: int
    is_diffused: bool
    votes: dict[str, list[FrozenVote]]
    hits: int
    width_um: float | None = None
    scale_unknown: bool = False

    @property
    def tallies(self) -> list[tuple[str, list[FrozenVote]]]:
        """Title and votes of each question that somebody voted on."""
        both = (("Labels", self.votes["label"]), ("Diagnoses", self.votes["diagnosis"]))
        return [(title, votes) for title, votes in both if votes]

    @property
    def order(self) -> str:
        """In which order the hits stand, in words."""
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
    """Of a picture's scale bar: the largest of 1, 2, 5, 10, ... microns that its width allows."""
    most_um = width_um * _BAR_SHARE
    power = 10.0 ** math.floor(math.log10(most_um))
    return next(step * power for step in (5, 2, 1) if step * power <= most_um * (1 + 1e-9))


def length_text(length_um: float) -> str:
    """For people: "200 µm", "1 mm"."""
    return f"{length_um / 1000:g} mm" if length_um >= 1000 else f"{length_um:g} µm"


class Change(StrEnum):
    """What became of a hit."""

    SAME = "same"
    MOVED = "moved"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ChangedHit:
    """A hit of a report, of the present answer, or of both.

    Attributes:
        before, now: its rank. region: of the report. hit: of the answer.
    """

    change: Change
    before: int | None
    now: int | None
    region: ReportRegion | None
    hit: Hit | None


@dataclass(frozen=True, slots=True)
class Changes:
    """A report beside the same search asked again.

    Attributes:
        hits: in the order of the present answer, then those that are gone.
        encoder: the encoder then and now, as words; None if it is the same. index: likewise.
        erased: hits of the report that went with their patient.
    """

    hits: tuple[ChangedHit, ...]
    encoder: tuple[str, str] | None
    index: tuple[int, int] | None
    erased: int

    def count(self, change: str) -> int:
        """How many hits changed so."""
        return sum(hit.change == change for hit in self.hits)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Of each change."""
        return [(str(change), self.count(change)) for change in Change]


def report_list(user: User, *, case_id: uuid.UUID | None = None) -> QuerySet[Report]:
    """Reports of the person's labs, the newest first, without their pictures.

    Args:
        case_id: of what was searched with; None for all.
    """
    rows = Report.objects.owned_by(user).select_related("lab", "user", "canvas__case")
    if case_id is not None:
        rows = rows.filter(canvas__case=case_id)
    found: QuerySet[Report] = rows.defer("picture", "canvas__levels")
    return found


def report_get(user: User, report_id: uuid.UUID) -> Report:
    """One report, or ``NotFoundError``."""
    rows = Report.objects.owned_by(user).select_related(
        "lab", "user", "canvas__case", "roi__canvas__case", "query__canvas__case"
    )
    found: Report | None = rows.filter(pk=report_id).first()
    if found is None:
        raise NotFoundError("There is no such report. It may have been deleted.")
    return found


def rois_to_show(ids: list[uuid.UUID]) -> list[Roi]:
    """For a task: those of the ROIs that are live, with what their pictures need."""
    rows = Roi.objects.live().filter(pk__in=ids).select_related("canvas", "label").order_by("pk")
    return list(rows)


def report_regions(
    user: User, report: Report, *, role: str = RegionRole.HIT
) -> QuerySet[ReportRegion]:
    """Its regions that the person may see, the best first, without their pictures."""
    rows: QuerySet[ReportRegion] = (
        ReportRegion.objects.owned_by(user)
        .filter(report=report, role=role)
        .select_related("roi", "canvas__case")
        .defer("picture", "canvas__levels", "roi__geometry", "roi__foreign")
    )
    return rows


def report_marks(user: User, report: Report) -> str:
    """How many regions were marked when it was asked, of those that the person may see."""
    roles = (RegionRole.LIKED, RegionRole.UNLIKED)
    liked, unliked = (report_regions(user, report, role=role).count() for role in roles)
    return f"{liked} alike, {unliked} not alike" if liked or unliked else ""


def report_picture(user: User, report: Report, rank: int) -> bytes:
    """JPEG of a hit, or with rank 0 of what was searched with.

    Raises:
        NotFoundError: none is kept.
    """
    held: bytes | memoryview | None = report.picture
    if rank:
        rows = ReportRegion.objects.owned_by(user).filter(report=report, role=RegionRole.HIT)
        held = rows.filter(rank=rank).values_list("picture", flat=True).first()
    if not held:
        raise NotFoundError("The report has no such picture.")
    return bytes(held)


def report_changes(
    report: Report, before: Sequence[ReportRegion], result: SimilarResult
) -> Changes:
    """What the same search gives now, beside what it gave then.

    Args:
        before: the hits of the report that are left.
    """
    frozen = Frozen.of_json(report.content)
    known = {str(region.content["roi"]): region for region in before}
    found = [_changed(hit, known.pop(str(hit.roi.pk), None)) for hit in result.hits]
    gone = [ChangedHit(Change.GONE, one.rank, None, one, None) for one in known.values()]
    encoder, index = result.query.encoder, result.index
    now = (encoder.name, encoder.version, encoder.config_hash)
    is_same = tuple(frozen.encoder) == now
    then = f"{frozen.encoder[0]} {frozen.encoder[1]}"
    return Changes(
        (*found, *gone),
        None if is_same else (then, str(encoder)),
        None if frozen.index[0] == index.version else (frozen.index[0], index.version),
        frozen.hits - len(before),
    )


def _changed(hit: Hit, region: ReportRegion | None) -> ChangedHit:
    if region is None:
        return ChangedHit(Change.NEW, None, hit.rank, None, hit)
    change = Change.SAME if region.rank == hit.rank else Change.MOVED
    return ChangedHit(change, region.rank, hit.rank, region, hit)
