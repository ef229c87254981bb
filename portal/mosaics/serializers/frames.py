"""The frames of a mosaic as programs (and the viewer) see them."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from portal.annotations.serializers import FiniteField
from portal.mosaics.models import FrameStatus, MosaicFrame
from portal.mosaics.selectors.frames_at_point import FrameAtPoint


def frame_url(canvas_id: uuid.UUID, pts: int) -> str:
    """Address of a frame of a video's canvas, as JPEG."""
    return reverse("api:canvas-frame", kwargs={"pk": canvas_id, "pts": pts})


class MosaicFrameSerializer(serializers.ModelSerializer[MosaicFrame]):
    """A frame. The matrix is 3 x 3, row major, frame to mosaic pixels; null if unplaced.

    ``mesh`` is the additional non-rigid deformation, 9 x 9 displacements in frame pixels, null if
    there
    is none: mosaic point q is at y + mesh(y) in the frame, with y = inverse(matrix) q.
    """

    H_mosaic_from_frame = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), allow_null=True
    )
    mesh = serializers.ListField(
        child=serializers.ListField(child=serializers.ListField(child=serializers.FloatField())),
        allow_null=True,
    )

    class Meta:
        model = MosaicFrame
        fields = (
            "index",
            "pts",
            "status",
            "reason",
            "reason_code",
            "component",
            "H_mosaic_from_frame",
            "mesh",
            "covariance",
            "uncertainty_px",
            "sharpness",
            "links",
            "error_px",
            "is_key",
        )


class FrameQuerySerializer(serializers.Serializer[Any]):
    """Filter of the frames."""

    status = serializers.ChoiceField(FrameStatus.choices, required=False)


class PointSerializer(serializers.Serializer[Any]):
    """A point of the mosaic, in its level-0 pixels."""

    x = FiniteField()
    y = FiniteField()
    component = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=10_000,
        help_text="Index of the component; 0 by default",
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=1000)


class FrameAtPointSerializer(serializers.Serializer[Any]):
    """A frame that saw the point, and where in the frame."""

    index = serializers.IntegerField()
    pts = serializers.IntegerField()
    time_s = serializers.FloatField()
    xy_frame = serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2)
    from_centre_px = serializers.FloatField()
    sharpness = serializers.FloatField(allow_null=True, help_text="Compare within one video")
    uncertainty_px = serializers.FloatField(allow_null=True, help_text="One standard deviation")
    outline = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2),
        help_text="The frame's view on the mosaic",
    )
    image_url = serializers.SerializerMethodField()
    viewer_url = serializers.SerializerMethodField()

    def get_image_url(self, frame: FrameAtPoint) -> str:
        """The frame as JPEG."""
        return frame_url(self.context["canvas_id"], frame.pts)

    def get_viewer_url(self, frame: FrameAtPoint) -> str:
        """The video at that frame, the point in the middle."""
        x, y = frame.xy_frame
        viewer = reverse("archive:viewer", args=[self.context["canvas_id"]])
        return f"{viewer}?t={frame.pts}&x={x:g}&y={y:g}"


class FramesAtPointSerializer(serializers.Serializer[Any]):
    """The frames that saw a point, the sharpest first; ``count`` is all that did."""

    count = serializers.IntegerField()
    results = FrameAtPointSerializer(many=True)


class FrameReasonSerializer(serializers.Serializer[Any]):
    """Reason; ``reason`` of the columns is an index into these."""

    code = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    color = serializers.CharField()


class FrameColumnsSerializer(serializers.Serializer[Any]):
    """Every frame, in columns of equal length."""

    count = serializers.IntegerField()
    time_base_s = serializers.FloatField()
    reasons = FrameReasonSerializer(many=True)
    index = serializers.ListField(child=serializers.IntegerField())
    pts = serializers.ListField(child=serializers.IntegerField())
    reason = serializers.ListField(
        child=serializers.IntegerField(), help_text="Index into `reasons`, counted from 0"
    )
    component = serializers.ListField(child=serializers.IntegerField(allow_null=True))
    outline = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), allow_null=True),
        help_text="x, y, x, y, ... on the component of the frame; null if it is on none",
    )
