"""Comments on ROIs, and presence on a canvas. Verdicts are revisions of the ROI."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.archive.models.records import canvases_in_trash
from portal.labs.models import LabOwned

COMMENT_MAX = 2_000  # characters


class RoiComment(LabOwned):
    """A comment in the thread of an ROI, which cannot be edited.

    ``version`` is the commented version of the ROI; with ``goes_with_verdict`` the comment explains
    the review step that made this version.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="comments")
    version = models.PositiveIntegerField()
    text = models.CharField(max_length=COMMENT_MAX)
    mentions = models.JSONField(
        default=list, help_text="Mentions of members as written, such as @Anna Berg"
    )
    goes_with_verdict = models.BooleanField(default=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("created_at", "id")

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(roi__canvas__in=canvases_in_trash())


class CanvasPresence(LabOwned):
    """An open page of the viewer: user, canvas, view and selected ROI.

    ``lab`` is the lab of the canvas. The row is written on changes and from time to time; rows
    older than ``selectors.live.AWAY_S`` are ignored.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tab = models.UUIDField(help_text="Chosen by the page")
    seen_at = models.DateTimeField()
    view = models.JSONField(null=True, help_text="left, top, right, bottom in level-0 pixels")
    roi_id = models.UUIDField(null=True, help_text="The ROI that is selected")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["canvas", "user", "tab"], name="presence_of_tab"),
        )
        indexes = (models.Index(fields=["canvas", "seen_at"], name="presence_now"),)
