"""What is said about ROIs, and who looks at a canvas. Verdicts are revisions of the ROI."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, canvases_in_bin
from portal.labs.models import LabOwned

COMMENT_MAX = 2_000  # characters: a paragraph, not a report


class RoiComment(LabOwned):
    """One contribution to the thread of an ROI; it stays as it was written.

    ``version`` is that of the ROI it speaks of; with ``goes_with_verdict`` it explains the step of
    review that made this version.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="comments")
    version = models.PositiveIntegerField()
    text = models.CharField(max_length=COMMENT_MAX)
    goes_with_verdict = models.BooleanField(default=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("created_at", "id")

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(roi__canvas__in=canvases_in_bin())


class CanvasPresence(LabOwned):
    """One open page of the viewer: who has a canvas on screen, where, and with which ROI chosen.

    ``lab`` is that of the canvas. The row is written when something changed and now and then; one
    that is older than ``selectors.live.AWAY_S`` is nobody's any more.
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
