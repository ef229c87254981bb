"""Reads of a person's notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.urls import reverse

from portal.archive.models import Canvas, Upload
from portal.inbox.models import (
    Notification,
    NotificationKind,
    NotificationPreferences,
    NotificationQuerySet,
)
from portal.labs.models import TokenArea, User

MAX_COUNT = 100
"""Largest unread count: the badge shows it as "99+"."""
AREAS: Mapping[NotificationKind, TokenArea] = {
    NotificationKind.REJECTED: TokenArea.ROIS,
    NotificationKind.COMMENTED: TokenArea.ROIS,
    NotificationKind.MENTIONED: TokenArea.ROIS,
    NotificationKind.ASSIGNED: TokenArea.ROIS,
    NotificationKind.MOSAIC_FINISHED: TokenArea.MOSAICS,
    NotificationKind.MOSAIC_FAILED: TokenArea.MOSAICS,
    NotificationKind.IMPORT_FINISHED: TokenArea.CASES,
    NotificationKind.IMPORT_FAILED: TokenArea.CASES,
    NotificationKind.QUARANTINED: TokenArea.CASES,
}
"""Area that a token needs to read a kind of notification."""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A notification as people read it.

    Attributes:
        title: Sentence without the names of cases and images.
        place: Accession number and name of the image or file; empty if it has none.
        text: Comment, reason or error.
        url: Path of the page of its subject.
    """

    row: Notification
    title: str
    place: str
    text: str
    url: str


def notification_list(
    user: User, *, kinds: Iterable[NotificationKind] | None = None
) -> NotificationQuerySet:
    """Notifications of a person, newest first, with what an ``InboxEntry`` needs.

    Args:
        kinds: Only these; None for all.
    """
    rows = Notification.objects.visible_to(user)
    if kinds is not None:
        rows = rows.filter(kind__in=list(kinds))
    return rows.select_related(
        "lab",
        "actor",
        "comment",
        "roi__label",
        "roi__canvas__case",
        "mosaic__case",
        "roi_import__canvas__case",
        "upload__case",
        "assignment__canvas__case",
    ).defer(
        "roi__geometry",
        "roi__foreign",
        "roi__track",
        "roi__canvas__levels",
        "roi_import__report",
        "roi_import__canvas__levels",
        "assignment__canvas__levels",
    )


def unread_count(user: User, *, kinds: Iterable[NotificationKind] | None = None) -> int:
    """Number of unread notifications, at most ``MAX_COUNT``. One query, or two if there are any."""
    # Every page asks. Whether a subject is visible takes a query that is long to compose.
    if not Notification.all_objects.filter(recipient=user).unread().exists():
        return 0
    rows = Notification.objects.visible_to(user).unread().order_by()
    if kinds is not None:
        rows = rows.filter(kind__in=list(kinds))
    return int(rows.values("pk")[:MAX_COUNT].count())


def preferences_of(user: User) -> NotificationPreferences:
    """Preferences of a person; the defaults, unsaved, where none were set."""
    preferences = NotificationPreferences.objects.filter(user=user).first()
    return preferences or NotificationPreferences(user=user)


def inbox_entry(row: Notification) -> InboxEntry:
    """A notification as people read it. Call with a row of ``notification_list``."""
    text = row.comment.text if row.comment else str(row.params.get("error", ""))
    if row.kind == NotificationKind.QUARANTINED and row.upload:
        text = row.upload.error_message
    return InboxEntry(row, _title(row), _place(row), text, _url(row))


def _title(row: Notification) -> str:
    actor = str(row.actor) if row.actor else "Somebody"
    count = int(row.params.get("count", 1))
    images = "an image" if count == 1 else f"{count:,} images"
    titles = {
        NotificationKind.REJECTED: f"{actor} rejected your region",
        NotificationKind.COMMENTED: f"{actor} commented on a region",
        NotificationKind.MENTIONED: f"{actor} mentioned you in a comment",
        NotificationKind.ASSIGNED: f"{actor} assigned you {images}",
        NotificationKind.MOSAIC_FINISHED: "Your mosaic is ready",
        NotificationKind.MOSAIC_FAILED: "Your mosaic could not be built",
        NotificationKind.IMPORT_FINISHED: "Your import has finished",
        NotificationKind.IMPORT_FAILED: "Your import failed",
        NotificationKind.QUARANTINED: "A file was put into quarantine",
    }
    return titles[NotificationKind(row.kind)]


def _place(row: Notification) -> str:
    canvas, case = _canvas(row), row.upload.case if row.upload else None
    parts = [canvas.case.accession, canvas.name] if canvas else []
    if row.roi:
        parts.append(row.roi.name or (row.roi.label.name if row.roi.label else ""))
    elif row.roi_import:
        parts.append(row.roi_import.document_name)
    elif row.mosaic:
        parts = [row.mosaic.case.accession, row.mosaic.name]
    elif row.upload:
        parts = [case.accession if case else "", row.upload.name or row.upload.filename]
    return " · ".join(part for part in parts if part)


def _url(row: Notification) -> str:
    canvas = _canvas(row)
    if canvas:
        selected = f"?roi={row.roi_id}" if row.roi_id else ""
        return reverse("archive:viewer", args=[canvas.pk]) + selected
    if row.mosaic_id:
        return reverse("mosaics:mosaic_detail", args=[row.mosaic_id])
    if row.upload:
        return _upload_url(row, row.upload)
    return reverse("reader_studies:work")


def _upload_url(row: Notification, upload: Upload) -> str:
    if row.kind == NotificationKind.QUARANTINED:
        return f"{reverse('archive:intake')}?lab={row.lab.slug}#file-{upload.pk}"
    if upload.case_id:
        return reverse("archive:case_detail", args=[upload.case_id])
    return f"{reverse('interop:case_imports')}?lab={row.lab.slug}"


def _canvas(row: Notification) -> Canvas | None:
    holder = row.roi or row.roi_import or row.assignment
    return holder.canvas if holder else None
