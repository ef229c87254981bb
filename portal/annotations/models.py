"""Labels, regions of interest (ROIs) and their revisions. Nothing is ever overwritten."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models

from portal.archive.models import Canvas
from portal.archive.models.records import canvases_in_trash
from portal.archive.models.shares import cases_shared_with
from portal.core.database.names import NameField, NameKeyField
from portal.core.models import BaseModel
from portal.core.serialized import SerializedDictEncoder
from portal.jobs.models import Job
from portal.labs.models import LabOwned, User
from portal.labs.models.people import LabOwnedQuerySet, WithoutTrashedManager


class LabelSet(LabOwned):
    """A lab's vocabulary."""

    name = NameField(max_length=80)
    is_default = models.BooleanField(default=False)
    property_types = models.JSONField(default=list, blank=True, help_text="properties.PropertyType")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["lab", "name"], name="label_set_name_unique"),
        )


class LabelSetVersion(LabOwned):
    """A label set as it was published: unchanged when the labels change."""

    label_set = models.ForeignKey(LabelSet, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    labels = models.JSONField(help_text="id, name, color, key and parent of each, in order")
    note = models.CharField(max_length=200, blank=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=["label_set", "number"], name="label_set_version_once"),
        )

    def __str__(self) -> str:
        return f"{self.label_set} {self.number}"


class Label(LabOwned):
    """A label with its colour ``#rrggbb``, below another label or at the top.

    One that is retired is on no new ROI; those that have it keep it. Names are unique in whatever
    spelling and case, among labels that are not retired.
    """

    # Without the position: reordering writes many labels and must not overwrite other fields.
    edited = (
        "name",
        "color",
        "key",
        "retired_at",
        "merged_into_id",
    )

    label_set = models.ForeignKey(LabelSet, on_delete=models.CASCADE, related_name="labels")
    name = NameField(max_length=80)
    name_key = NameKeyField(max_length=160, of="name")  # a folded letter may become two or three
    color = models.CharField(max_length=7, default="#3d7ea6")
    position = models.PositiveIntegerField(default=0)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    key = models.CharField(max_length=1, blank=True, help_text="Key of the viewer: 1 to 9")
    retired_at = models.DateTimeField(null=True, blank=True)
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("position", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["label_set", "name_key"],
                condition=models.Q(retired_at=None),
                name="label_name_unique_in_any_case",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Labels of ROIs in shared cases: the ROIs are unreadable without them."""
        return models.Q(
            pk__in=Roi.objects.live().filter(_is_on_shared_case(user)).values("label_id")
        )


class ReviewState(models.TextChoices):
    """State of an ROI in review: a draft is submitted, then accepted or rejected.

    A change of outline or label makes it a draft again.
    """

    DRAFT = "draft", "Draft"
    SUBMITTED = "submitted", "Submitted"
    ACCEPTED = "accepted", "Accepted"
    REJECTED = "rejected", "Rejected"


class ReviewRules(LabOwned):
    """Review settings of a lab; without a row, the defaults apply."""

    edited = ("may_judge_own",)

    may_judge_own = models.BooleanField(
        default=True,
        help_text="Reviewers may accept or reject what they drew or changed themselves",
    )

    class Meta:
        verbose_name_plural = "review rules"
        constraints = (models.UniqueConstraint(fields=["lab"], name="review_rules_of_lab"),)


class RoiKind(models.TextChoices):
    """Type of an ROI: an ellipse fills its bounds and keeps its handles.

    Points (one or many) and lines have no area.
    """

    POLYGON = "polygon", "Polygon"
    ELLIPSE = "ellipse", "Ellipse"
    POINT = "point", "Points"
    LINE = "line", "Line"


class RoiQuerySet(LabOwnedQuerySet["Roi"]):
    """ROIs; deleted ones are included unless filtered by ``live``."""

    def live(self) -> Self:
        """ROIs that are not deleted."""
        return self.filter(deleted_at__isnull=True)


RoiManager = WithoutTrashedManager.from_queryset(RoiQuerySet)


class Roi(LabOwned):
    """An area, points or lines in level-0 pixels of a canvas (and a frame, for video).

    ``version`` counts revisions; it is the ETag. Bounds, centroid and area are derived from the
    geometry. A locked ROI cannot be changed or deleted until it is unlocked; it may be reviewed.
    ``track`` has its key frames on other frames of the video; empty for most. ``description`` and
    ``properties`` (texts by key) are written by people. ``foreign`` has fields of other tools
    (measurements), preserved so that a round trip loses nothing.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="rois")
    frame_index = models.PositiveIntegerField(null=True, blank=True)
    frame_pts = models.BigIntegerField(null=True, blank=True)
    geometry = models.JSONField(encoder=SerializedDictEncoder, help_text="GeoJSON, level-0 pixels")
    left = models.FloatField()
    top = models.FloatField()
    right = models.FloatField()
    bottom = models.FloatField()
    centroid_x = models.FloatField(default=0)
    centroid_y = models.FloatField(default=0)
    area_px = models.FloatField()
    foreign = models.JSONField(default=dict, blank=True)
    track = models.JSONField(default=list, blank=True, help_text="services.tracks.KeyFrame")
    shape = models.CharField(max_length=8, choices=RoiKind.choices, default=RoiKind.POLYGON)
    is_locked = models.BooleanField(default=False)
    name = NameField(max_length=120, blank=True)
    description = models.TextField(blank=True, default="")
    properties = models.JSONField(default=dict, blank=True, help_text="Texts by key")
    label = models.ForeignKey(Label, null=True, blank=True, on_delete=models.PROTECT)
    review_state = models.CharField(
        max_length=12, choices=ReviewState.choices, default=ReviewState.DRAFT
    )
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = RoiManager()  # type: ignore[misc,assignment]  # narrower than the one inherited
    all_objects = RoiQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        ordering = ("created_at", "id")
        indexes = (
            models.Index(
                # A window is counted, and its largest are found, without reading a single outline.
                fields=[
                    *("canvas", "deleted_at", "-area_px", "id"),
                    *("left", "top", "right", "bottom", "created_at", "lab"),
                ],
                name="roi_canvas_largest",
            ),
            models.Index(fields=["lab", "review_state", "updated_at"], name="roi_review"),
            models.Index(fields=["canvas", "updated_at"], name="roi_changed"),
        )

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash.

        Uses a subquery instead of a join so that a guarded UPDATE only touches the row's own table.
        """
        return rows.exclude(canvas__in=canvases_in_trash())

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Condition for rows that are not deleted, on a case that another lab shares."""
        return models.Q(deleted_at=None) & _is_on_shared_case(user)


def _is_on_shared_case(user: User) -> models.Q:
    """Condition for rows on a canvas of a shared case.

    A subquery instead of a join, so that a guarded UPDATE only touches the row's own table.
    """
    shared = Canvas.objects.filter(case_id__in=cases_shared_with(user)).order_by()
    return models.Q(canvas_id__in=shared.values("pk"))


class ImportStage(models.TextChoices):
    """The step last requested for a document; its job says how far along that is."""

    PREVIEWING = "previewing", "Being previewed"
    PREVIEWED = "previewed", "Previewed"
    IMPORTING = "importing", "Being imported"
    IMPORTED = "imported", "Imported"
    UNDOING = "undoing", "Being undone"


class RoiImport(LabOwned):
    """Import of one document onto a canvas. Revisions refer to it, so it can be undone as one step.

    An import that runs as a job stores its progress here in the transaction of each part, so a
    resumed job counts nothing twice.

    Attributes:
        done: Number of features processed.
        report: Report of the processed features.
        table_bytes: Size of their table, one line per feature.
        undone: Counts of ROIs and events per result, while the import is undone.
        undo_after: Last id of an ROI or event that the undo has processed, in the order of ids.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="roi_imports")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    undone_at = models.DateTimeField(null=True, blank=True)
    undone = models.JSONField(null=True, blank=True, help_text="services.imports.ImportUndone")
    undo_after = models.UUIDField(null=True, blank=True)
    stage = models.CharField(
        max_length=10, choices=ImportStage.choices, default=ImportStage.IMPORTED
    )
    format = models.CharField(max_length=16, default="geojson")
    document_name = NameField(max_length=200, blank=True)
    choices = models.JSONField(default=dict, blank=True)
    done = models.PositiveIntegerField(default=0)
    report = models.JSONField(null=True, blank=True)
    table_bytes = models.PositiveBigIntegerField(default=0)
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")


class LabelMerge(LabOwned):
    """A label merged into another, with the data to undo the merge in one step."""

    source = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    target = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    undone_at = models.DateTimeField(null=True, blank=True)
    key = models.CharField(max_length=1, blank=True, help_text="Of the source, before")
    children = models.JSONField(default=list, blank=True, help_text="Ids of those below it, before")


class RoiAction(models.TextChoices):
    """Kind of change in a revision."""

    CREATE = "create", "Created"
    UPDATE = "update", "Changed"
    DELETE = "delete", "Deleted"
    RESTORE = "restore", "Restored"


class RoiRevision(BaseModel):
    """The state of an ROI after one change, with who and when.

    ``label_name`` and ``label_version`` are those at the time of the change: renaming a label later
    does not alter the history.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=8, choices=RoiAction.choices)
    geometry = models.JSONField(encoder=SerializedDictEncoder)
    track = models.JSONField(default=list, blank=True)
    name = NameField(max_length=120, blank=True)
    description = models.TextField(blank=True, default="")
    properties = models.JSONField(default=dict, blank=True, help_text="Texts by key")
    label = models.ForeignKey(Label, null=True, blank=True, on_delete=models.PROTECT)
    label_name = NameField(max_length=80, blank=True)
    label_version = models.PositiveIntegerField(
        null=True,
        help_text="The version of the label set that was the latest published at that time",
    )
    label_merge = models.ForeignKey(
        LabelMerge, null=True, blank=True, on_delete=models.SET_NULL, related_name="revisions"
    )
    review_state = models.CharField(max_length=12, choices=ReviewState.choices)
    shape = models.CharField(max_length=8, choices=RoiKind.choices, default=RoiKind.POLYGON)
    is_locked = models.BooleanField(default=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    roi_import = models.ForeignKey(
        RoiImport, null=True, blank=True, on_delete=models.SET_NULL, related_name="revisions"
    )

    class Meta:
        ordering = ("version",)
        constraints = (
            models.UniqueConstraint(fields=["roi", "version"], name="roi_revision_unique"),
        )


class VideoEvent(LabOwned):
    """An event of a video without an outline, from its first to its last frame.

    One whose first frame is its last is a moment: a tag of that frame. Frames are counted in the
    order of presentation from 0; ``first_pts`` and ``last_pts`` are their presentation times in the
    time base of the video. ``version`` counts revisions; it is the ETag.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="video_events")
    name = NameField(max_length=80)
    name_key = NameKeyField(max_length=160, of="name")
    note = models.TextField(blank=True, default="")
    first_index = models.PositiveIntegerField()
    first_pts = models.BigIntegerField()
    last_index = models.PositiveIntegerField()
    last_pts = models.BigIntegerField()
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("first_index", "last_index", "id")
        indexes = (
            models.Index(fields=["canvas", "deleted_at", "first_index"], name="video_event_canvas"),
        )

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Condition for rows that are not deleted, on a case that another lab shares."""
        return models.Q(deleted_at=None) & _is_on_shared_case(user)


class VideoEventRevision(BaseModel):
    """The state of an event of a video after one change, with who and when."""

    event = models.ForeignKey(VideoEvent, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=8, choices=RoiAction.choices)
    name = NameField(max_length=80)
    note = models.TextField(blank=True, default="")
    first_index = models.PositiveIntegerField()
    last_index = models.PositiveIntegerField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    roi_import = models.ForeignKey(
        RoiImport, null=True, blank=True, on_delete=models.SET_NULL, related_name="event_revisions"
    )

    class Meta:
        ordering = ("version",)
        constraints = (
            models.UniqueConstraint(fields=["event", "version"], name="video_event_revision_once"),
        )
