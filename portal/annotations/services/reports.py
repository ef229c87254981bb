"""What became, or would become, of a document: counted whole, listed as far as a person reads."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ml.types import JsonObject
from portal.annotations.formats import cell

ITEMS_MOST = 2_000
"""Of a larger document only what was refused or repaired is listed, at most this many."""
GROUPS_MOST = 200  # different reasons; further ones are counted together
FIRST_MOST = 10  # features named of each reason
_NUMBERS = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class ImportItem:
    """What became of one feature.

    Attributes:
        index: its place in the document, from 0.
        status: created, updated, restored, unchanged or refused.
        notes: what was repaired, clipped or left out.
        reason: why it was refused.
        shape: names it: its kind, name and class.
    """

    index: int
    status: str
    roi_id: uuid.UUID | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""
    shape: str = ""

    @property
    def said(self) -> str:
        """The reason with the shape that it is about."""
        return f"{self._named}{self.reason}" if self.reason else ""

    @property
    def _named(self) -> str:
        return f"{self.shape or f'feature {self.index + 1}'}: "

    @classmethod
    def kept(cls, one: Mapping[str, Any]) -> ImportItem:
        """One of a report that was kept."""
        roi_id = uuid.UUID(one["roi"]) if one["roi"] else None
        item = cls(one["index"], one["status"], roi_id, tuple(one["notes"]), shape=one["shape"])
        return replace(item, reason=one["reason"].removeprefix(item._named))


TABLE_HEAD = ("feature", "status", "notes", "reason", "shape")


def table_line(item: ImportItem) -> tuple[int | str, ...]:
    """A line of the table of an import; features are counted from 1, as people do."""
    notes, reason = cell("; ".join(item.notes)), cell(item.said)
    return item.index + 1, item.status, notes, reason, cell(item.shape)


@dataclass(slots=True)
class ImportGroup:
    """Features with the same reason, except for numbers.

    Attributes:
        status: refused, or repaired.
        reason: as it was given for the first of them.
        first: places of the first few. shapes: names of these.
    """

    status: str
    reason: str
    count: int = 0
    first: list[int] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportClass:
    """A class of the document.

    Attributes:
        fate: known, mapped, created, none (its ROIs get no label) or refused.
        label_id: of the label that its ROIs get; None if there is none, or none yet.
        problem: why it is refused.
    """

    name: str
    color: str | None
    count: int
    fate: str
    label_id: uuid.UUID | None = None
    label_name: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of a document; every feature is counted.

    Attributes:
        items: see ``ITEMS_MOST``. groups: all reasons, the commonest first.
        import_id: what ``roi_import_undo`` takes back; None if nothing was changed.
        is_preview: nothing was written.
        format: the one that the document was read as.
        image_decided: which image or document of several was read, and by what.
        outlines: of a preview, some of what would be made, simplified, to be drawn.
    """

    total: int
    counts: Counter[str]
    repaired: int
    items: tuple[ImportItem, ...]
    groups: tuple[ImportGroup, ...]
    classes: tuple[ImportClass, ...]
    import_id: uuid.UUID | None = None
    is_preview: bool = False
    format: str = "geojson"
    image_decided: str = ""
    outlines: tuple[JsonObject, ...] = ()

    def count(self, status: str) -> int:
        """How many features have this status."""
        return self.counts[status]

    @property
    def labels_created(self) -> tuple[str, ...]:
        """Labels that the lab did not have."""
        return tuple(one.name for one in self.classes if one.fate == "created")


STATUSES = ("created", "updated", "restored", "unchanged", "refused")


def report_json(report: ImportReport) -> JsonObject:
    """As programs see it, and as it is kept; ``ImportTally.restore`` continues from it."""
    return {
        "total": report.total,
        "format": report.format,
        "image_decided": report.image_decided,
        **{status: report.count(status) for status in STATUSES},
        "repaired": report.repaired,
        "labels_created": list(report.labels_created),
        "classes": [
            {
                "name": one.name,
                "color": one.color,
                "count": one.count,
                "fate": one.fate,
                "label": one.label_id and str(one.label_id),
                "label_name": one.label_name,
                "problem": one.problem,
            }
            for one in report.classes
        ],
        "groups": [asdict(one) for one in report.groups],
        "id": report.import_id and str(report.import_id),
        "is_preview": report.is_preview,
        "items": [
            {
                "index": one.index,
                "status": one.status,
                "roi": one.roi_id and str(one.roi_id),
                "shape": one.shape,
                "notes": list(one.notes),
                "reason": one.said,
            }
            for one in report.items
        ],
    }


def classes_kept(kept: Mapping[str, Any]) -> tuple[ImportClass, ...]:
    """The classes of a report that was kept: a label made for one is known by now."""
    return tuple(
        ImportClass(
            one["name"],
            one["color"],
            one["count"],
            one["fate"],
            label_id=uuid.UUID(one["label"]) if one["label"] else None,
            label_name=one["label_name"],
            problem=one["problem"],
        )
        for one in kept["classes"]
    )


class ImportTally:
    """Counts items as they come; its size does not grow with their number."""

    def __init__(
        self,
        total: int,
        told: Callable[[ImportItem], None] | None = None,
        *,
        format: str = "geojson",
        image_decided: str = "",
    ) -> None:
        self.total, self.format, self.image_decided = total, format, image_decided
        self.counts: Counter[str] = Counter()
        self.repaired = 0
        self.items: list[ImportItem] = []
        self._groups: dict[tuple[str, str], ImportGroup] = {}
        self._told = told

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on from a report that was kept."""
        self.counts = Counter({status: kept[status] for status in STATUSES})
        self.repaired = kept["repaired"]
        for one in kept["groups"]:
            key = (one["status"], _NUMBERS.sub("#", one["reason"]))
            self._groups[key] = ImportGroup(**one)
        self.items = [ImportItem.kept(one) for one in kept["items"]]

    def add(self, item: ImportItem) -> None:
        """Count one feature."""
        self.counts[item.status] += 1
        is_refused = item.status == "refused"
        self.repaired += bool(item.notes) and not is_refused
        for said in (item.reason,) if is_refused else item.notes:
            self._group("refused" if is_refused else "repaired", said, item)
        if self.total <= ITEMS_MOST or (
            (is_refused or item.notes) and len(self.items) < ITEMS_MOST
        ):
            self.items.append(item)
        if self._told is not None:
            self._told(item)

    def report(
        self,
        classes: tuple[ImportClass, ...],
        *,
        import_id: uuid.UUID | None = None,
        is_preview: bool = False,
    ) -> ImportReport:
        """What was counted so far."""
        return ImportReport(
            total=self.total,
            counts=self.counts,
            repaired=self.repaired,
            items=tuple(self.items),
            groups=tuple(sorted(self._groups.values(), key=lambda group: -group.count)),
            classes=classes,
            import_id=import_id,
            is_preview=is_preview,
            format=self.format,
            image_decided=self.image_decided,
        )

    def _group(self, status: str, said: str, item: ImportItem) -> None:
        key = (status, _NUMBERS.sub("#", said))
        if key not in self._groups and len(self._groups) >= GROUPS_MOST:
            key, said = (status, ""), "other reasons"
        group = self._groups.setdefault(key, ImportGroup(status, said))
        group.count += 1
        if len(group.first) < FIRST_MOST:
            group.first.append(item.index)
            group.shapes.append(item.shape)
