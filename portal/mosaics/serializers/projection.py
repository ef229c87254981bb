"""ROIs carried between a mosaic and its frames, as programs (and the viewer) see them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.annotations.serializers import INT64_MAX, GeometryField
from portal.mosaics.serializers.frames import FrameAtPointSerializer


class ProjectionQuerySerializer(serializers.Serializer[Any]):
    """Onto which plane: a component of the mosaic, or the frame with this PTS."""

    component = serializers.IntegerField(required=False, min_value=0, max_value=10_000)
    pts = serializers.IntegerField(required=False, min_value=-INT64_MAX, max_value=INT64_MAX)


class ProjectedRoiSerializer(serializers.Serializer[Any]):
    """An ROI as it appears on another plane; derived, never stored."""

    roi = serializers.UUIDField(source="roi.pk")
    version = serializers.IntegerField(source="roi.version")
    drawn_on = serializers.UUIDField(source="roi.canvas_id", help_text="The canvas it belongs to")
    frame_index = serializers.IntegerField(source="roi.frame_index", allow_null=True)
    frame_pts = serializers.IntegerField(source="roi.frame_pts", allow_null=True)
    label = serializers.UUIDField(source="roi.label_id", allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField(source="roi.name")
    geometry = GeometryField(
        help_text="On the plane that was asked about, cut to what is seen there"
    )
    share = serializers.FloatField(help_text="Share of the outline's area that is seen there")
    uncertainty_px = serializers.FloatField(allow_null=True)


class ProjectedRoisSerializer(serializers.Serializer[Any]):
    """Projected ROIs and their number."""

    count = serializers.IntegerField()
    results = ProjectedRoiSerializer(many=True)


class RoiFramesQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: ROI of the mosaic."""

    roi = serializers.UUIDField()


class RoiInFrameSerializer(FrameAtPointSerializer):
    """A frame that sees an ROI of the mosaic; ``xy_frame`` is its middle."""

    geometry = GeometryField(help_text="The outline in the frame, cut to the scope's view")
    share = serializers.FloatField()

    def to_representation(self, roi_in_frame: Any) -> dict[str, Any]:
        """The frame's own fields, then the outline."""
        frame = FrameAtPointSerializer(roi_in_frame.frame, context=self.context).data
        return {**frame, "geometry": roi_in_frame.geometry, "share": roi_in_frame.share}


class RoiFramesSerializer(serializers.Serializer[Any]):
    """The frames that see an ROI, those that see all of it first, the sharpest among them first."""

    count = serializers.IntegerField()
    results = RoiInFrameSerializer(many=True)
