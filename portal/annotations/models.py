"""Labels, regions of interest (ROIs) and their revisions. Nothing is ever overwritten."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models

from portal.archive.models import Canvas, canvases_in_bin, cases_shared_with
from portal.core.database.names import NameField, NameKeyField
from portal.core.models import BaseModel
from portal.core.written import OnceEncoder
from portal.jobs.models import Job
from portal.labs.models import LabOwned, LabOwnedQuerySet, ShownManager, User


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
    """A label set as it was published: frozen, whatever becomes of the labels."""

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

    # Not the position: whoever moves labels moves many, and overwrites no text.
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
        """Those that regions of shared cases carry: without them nobody could read the regions."""
        return models.Q(pk__in=Roi.objects.live().filter(_on_shared(user)).values("label_id"))


class ReviewState(models.TextChoices):
    """Where an ROI stands in review: a draft is submitted, then accepted or rejected.

    A new outline or label makes it a draft again.
    """

    DRAFT = "draft", "Draft"
    SUBMITTED = "submitted", "Submitted"
    ACCEPTED = "accepted", "Accepted"
    REJECTED = "rejected", "Rejected"


class ReviewRules(LabOwned):
    """How a lab reviews; without a row, the defaults apply."""

    edited = ("may_judge_own",)

    may_judge_own = models.BooleanField(
        default=True,
        help_text="Reviewers may accept or reject what they drew or changed themselves",
    )

    class Meta:
        verbose_name_plural = "review rules"
        constraints = (models.UniqueConstraint(fields=["lab"], name="review_rules_of_lab"),)


class RoiKind(models.TextChoices):
    """What an ROI is besides its vertices: an ellipse fills its bounds and keeps its handles.

    Points (one or many) and lines have no area.
    """

    POLYGON = "polygon", "Polygon"
    ELLIPSE = "ellipse", "Ellipse"
    POINT = "point", "Points"
    LINE = "line", "Line"


class RoiQuerySet(LabOwnedQuerySet["Roi"]):
    """ROIs, deleted ones included unless ``live`` is asked for."""

    def live(self) -> Self:
        """Those that are not deleted."""
        return self.filter(deleted_at__isnull=True)


RoiManager = ShownManager.from_queryset(RoiQuerySet)


class Roi(LabOwned):
    """An area, points or lines in level-0 pixels of a canvas (and a frame, for video).

    ``version`` counts revisions; it is the ETag. Bounds, centroid and area are derived from the
    geometry. A locked one is not changed or deleted until it is unlocked; it may be reviewed.
    ``track`` is what it is on other frames of its video, by key frames; empty for most.
    ``description`` and ``properties`` (texts by key) are what people say of it. ``foreign`` is what
    another tool wrote beside these (measurements): carried so that a round trip loses nothing.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="rois")
    frame_index = models.PositiveIntegerField(null=True, blank=True)
    frame_pts = models.BigIntegerField(null=True, blank=True)
    geometry = models.JSONField(encoder=OnceEncoder, help_text="GeoJSON, level-0 pixels")
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
    everything = RoiQuerySet.as_manager()  # type: ignore[misc]

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
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin.

        By a subquery, not a join: a guarded UPDATE stays one on the row itself.
        """
        return rows.exclude(canvas__in=canvases_in_bin())

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Live ones of a case that another lab shares."""
        return models.Q(deleted_at=None) & _on_shared(user)


def _on_shared(user: User) -> models.Q:
    """On a canvas of a shared case; by a subquery for the same reason as ``Roi.shown``."""
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
    """One document brought onto a canvas. Its revisions name it, so it is undone as one step.

    One that runs as a job keeps here how far it came, written in the transaction of each part:
    whoever continues with it counts nothing twice.

    Attributes:
        done: features of the document that were dealt with. report: of these.
        table_bytes: how long the table of these is, one line a feature.
        undone: of an import that is being undone, what became of its ROIs so far (counts).
        undo_after: in the order of their ids, those up to this one were dealt with.
        client_key, client_digest: the request that brought it, see ``services.once``.
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
    client_key = models.CharField(max_length=64, blank=True, default="")
    client_digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["client_key"], condition=~models.Q(client_key=""), name="roi_import_once"
            ),
        )


class LabelMerge(LabOwned):
    """One label put into another: its revisions, and what the source had, undo it as one step."""

    source = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    target = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    undone_at = models.DateTimeField(null=True, blank=True)
    key = models.CharField(max_length=1, blank=True, help_text="Of the source, before")
    children = models.JSONField(default=list, blank=True, help_text="Ids of those below it, before")


class RoiAction(models.TextChoices):
    """What a revision did."""

    CREATE = "create", "Created"
    UPDATE = "update", "Changed"
    DELETE = "delete", "Deleted"
    RESTORE = "restore", "Restored"


class RoiRevision(BaseModel):
    """The state of an ROI after one change, with who and when.

    ``label_name`` and ``label_version`` are those of the moment: a label that is renamed later does
    not change what was said.

    ``client_key`` names the request that made it (``portal.annotations.services.once.Once``):
    sent again after a lost answer, it finds its revision and makes no second one.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=8, choices=RoiAction.choices)
    geometry = models.JSONField(encoder=OnceEncoder)
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
    client_key = models.CharField(max_length=64, blank=True, default="")
    client_digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ("version",)
        constraints = (
            models.UniqueConstraint(fields=["roi", "version"], name="roi_revision_unique"),
            models.UniqueConstraint(
                fields=["roi", "client_key"],
                condition=~models.Q(client_key=""),
                name="roi_revision_once",
            ),
        )
