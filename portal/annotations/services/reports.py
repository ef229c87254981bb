"""Report of an import or its preview: all features counted, a limited number listed."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ml.types import JsonObject
from portal.annotations.formats.tables import cell

MAX_ITEMS = 2_000
"""Maximum number of listed features. Of a larger document, only refused or repaired ones are
listed."""
MAX_REASONS = 200  # different reasons; further ones are counted together
MAX_FEATURES_PER_REASON = 10  # features named of each reason
_NUMBERS = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class ImportItem:
    """Result of one feature.

    Attributes:
        index: Position in the document, from 0.
        status: created, updated, restored, unchanged or refused.
        notes: Repairs, clipping and omissions.
        reason: Reason of a refusal.
        shape: Description: kind, name and class.
        is_event: It is an event of a video.
    """

    index: int
    status: str
    roi_id: uuid.UUID | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""
    shape: str = ""
    is_event: bool = False

    @property
    def message(self) -> str:
        """The reason, preceded by the shape that it concerns."""
        return f"{self._title}{self.reason}" if self.reason else ""

    @property
    def _title(self) -> str:
        return f"{self.shape or f'feature {self.index + 1}'}: "

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ImportItem:
        """Read an item of a stored report."""
        roi_id = uuid.UUID(entry["roi"]) if entry["roi"] else None
        item = cls(
            entry["index"], entry["status"], roi_id, tuple(entry["notes"]), shape=entry["shape"]
        )
        return replace(item, reason=entry["reason"].removeprefix(item._title))


TABLE_HEAD = ("feature", "status", "notes", "reason", "shape")


def table_line(item: ImportItem) -> tuple[int | str, ...]:
    """A line of the table of an import; features are counted from 1, as people do."""
    notes, reason = cell("; ".join(item.notes)), cell(item.message)
    return item.index + 1, item.status, notes, reason, cell(item.shape)


@dataclass(slots=True)
class ImportGroup:
    """Features with the same reason, except for numbers.

    Attributes:
        status: refused, or repaired.
        reason: as it was given for the first of them.
        first: places of the first few.
        shapes: names of these.
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
        outcome: known, mapped, created, none (its ROIs get no label) or refused.
        label_id: of the label that its ROIs get; None if there is none, or none yet.
        problem: why it is refused.
    """

    name: str
    color: str | None
    count: int
    outcome: str
    label_id: uuid.UUID | None = None
    label_name: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Result of an import; every feature is counted.

    Attributes:
        items: See ``MAX_ITEMS``.
        groups: All reasons, the most frequent first.
        import_id: Argument of ``roi_import_undo``; None if nothing was changed.
        is_preview: Nothing was written.
        format: Detected format of the document.
        image_decided: Image or document that was read if there were several, and how it was chosen.
        outlines: Simplified sample of the outlines in a preview, to be drawn.
        events: Events of a video among those created, updated and restored.
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
    events: int = 0

    def count(self, status: str) -> int:
        """Number of features with this status."""
        return self.counts[status]

    @property
    def labels_created(self) -> tuple[str, ...]:
        """Labels that the lab did not have."""
        return tuple(
            import_class.name for import_class in self.classes if import_class.outcome == "created"
        )


WRITTEN = ("created", "updated", "restored")
STATUSES = (*WRITTEN, "unchanged", "refused")


def report_json(report: ImportReport) -> JsonObject:
    """Report as stored and returned by the API; ``ImportTally.restore`` continues from it."""
    return {
        "total": report.total,
        "format": report.format,
        "image_decided": report.image_decided,
        **{status: report.count(status) for status in STATUSES},
        "events": report.events,
        "repaired": report.repaired,
        "labels_created": list(report.labels_created),
        "classes": [
            {
                "name": import_class.name,
                "color": import_class.color,
                "count": import_class.count,
                "outcome": import_class.outcome,
                "label": import_class.label_id and str(import_class.label_id),
                "label_name": import_class.label_name,
                "problem": import_class.problem,
            }
            for import_class in report.classes
        ],
        "groups": [asdict(group) for group in report.groups],
        "id": report.import_id and str(report.import_id),
        "is_preview": report.is_preview,
        "items": [
            {
                "index": item.index,
                "status": item.status,
                "roi": item.roi_id and str(item.roi_id),
                "shape": item.shape,
                "notes": list(item.notes),
                "reason": item.message,
            }
            for item in report.items
        ],
    }


def classes_from_json(report: Mapping[str, Any]) -> tuple[ImportClass, ...]:
    """Read the classes of a stored report, with the labels created for them."""
    return tuple(
        ImportClass(
            entry["name"],
            entry["color"],
            entry["count"],
            entry["outcome"],
            label_id=uuid.UUID(entry["label"]) if entry["label"] else None,
            label_name=entry["label_name"],
            problem=entry["problem"],
        )
        for entry in report["classes"]
    )


class ImportTally:
    """Counts items as they come; its size does not grow with their number."""

    def __init__(
        self,
        total: int,
        on_item: Callable[[ImportItem], None] | None = None,
        *,
        format: str = "geojson",
        image_decided: str = "",
    ) -> None:
        self.total, self.format, self.image_decided = total, format, image_decided
        self.counts: Counter[str] = Counter()
        self.events = 0
        self.repaired = 0
        self.items: list[ImportItem] = []
        self._groups: dict[tuple[str, str], ImportGroup] = {}
        self._on_item = on_item

    def restore(self, data: Mapping[str, Any]) -> None:
        """Continue from a stored report."""
        self.counts = Counter({status: data[status] for status in STATUSES})
        self.events = data.get("events", 0)
        self.repaired = data["repaired"]
        for entry in data["groups"]:
            key = (entry["status"], _NUMBERS.sub("#", entry["reason"]))
            self._groups[key] = ImportGroup(**entry)
        self.items = [ImportItem.from_json(entry) for entry in data["items"]]

    def add(self, item: ImportItem) -> None:
        """Count one feature."""
        self.counts[item.status] += 1
        self.events += item.is_event and item.status in WRITTEN
        is_refused = item.status == "refused"
        self.repaired += bool(item.notes) and not is_refused
        for reason in (item.reason,) if is_refused else item.notes:
            self._group("refused" if is_refused else "repaired", reason, item)
        if self.total <= MAX_ITEMS or ((is_refused or item.notes) and len(self.items) < MAX_ITEMS):
            self.items.append(item)
        if self._on_item is not None:
            self._on_item(item)

    def report(
        self,
        classes: tuple[ImportClass, ...],
        *,
        import_id: uuid.UUID | None = None,
        is_preview: bool = False,
    ) -> ImportReport:
        """Report of the features counted so far."""
        return ImportReport(
            total=self.total,
            counts=self.counts,
            events=self.events,
            repaired=self.repaired,
            items=tuple(self.items),
            groups=tuple(sorted(self._groups.values(), key=lambda group: -group.count)),
            classes=classes,
            import_id=import_id,
            is_preview=is_preview,
            format=self.format,
            image_decided=self.image_decided,
        )

    def _group(self, status: str, reason: str, item: ImportItem) -> None:
        key = (status, _NUMBERS.sub("#", reason))
        if key not in self._groups and len(self._groups) >= MAX_REASONS:
            key, reason = (status, ""), "other reasons"
        group = self._groups.setdefault(key, ImportGroup(status, reason))
        group.count += 1
        if len(group.first) < MAX_FEATURES_PER_REASON:
            group.first.append(item.index)
            group.shapes.append(item.shape)
