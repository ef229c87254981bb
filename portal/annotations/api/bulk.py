"""``/api/v1/rois/bulk/``: many ROIs of one canvas, changed as one step."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.api.parsers import STEPS_BYTES, STEPS_VALUES, GeometryJsonParser
from portal.annotations.api.rows import RoiRowsRenderer, rows_text
from portal.annotations.models import Label, RoiAction, RoiKind
from portal.annotations.selectors.rois import rois_by_id
from portal.annotations.selectors.rows import roi_rows_by_id
from portal.annotations.serializers import (
    INT32_MAX,
    DescriptionField,
    FrameReferenceSerializer,
    GeometryField,
    KeyFrameInputSerializer,
    PropertiesField,
    RoiSerializer,
    rois_represent,
)
from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.properties import properties_given
from portal.archive.models import Canvas
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.problems import ProblemSerializer
from portal.core.api.views import ApiView
from portal.core.errors import InvalidInputError, StaleVersionError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.rules import require_role_anywhere

STALE = OpenApiResponse(
    ProblemSerializer, "Stale: nothing was written. `stale` has the ROIs as they are now."
)


class RoiStepSerializer(serializers.Serializer[Any]):
    """Change of one ROI; fields that an update omits keep their values."""

    do = serializers.ChoiceField(RoiAction.choices)
    id = serializers.UUIDField()
    version = serializers.IntegerField(
        required=False, min_value=1, max_value=INT32_MAX, help_text="Required, except for a new ROI"
    )
    geometry = GeometryField(required=False, help_text="Required for a new ROI")
    frame = FrameReferenceSerializer(required=False, allow_null=True)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField(required=False, allow_blank=True, max_length=120)
    description = DescriptionField(required=False)
    properties = PropertiesField(required=False)
    shape = serializers.ChoiceField(RoiKind.choices, required=False)
    locked = serializers.BooleanField(source="is_locked", required=False)
    track = KeyFrameInputSerializer(many=True, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A new ROI needs an outline, anything else the version that it changes."""
        needed = "geometry" if attrs["do"] == RoiAction.CREATE else "version"
        if needed not in attrs:
            raise serializers.ValidationError({needed: f"Required to {attrs['do']} a region."})
        return attrs


class RoiBulkSerializer(serializers.Serializer[Any]):
    """Steps on ROIs of one canvas."""

    canvas = serializers.UUIDField()
    changes = RoiStepSerializer(many=True)


class RoisChangedSerializer(serializers.Serializer[Any]):
    """The ROIs as they are now, in the order of the changes."""

    rois = RoiSerializer(many=True)


@audited(POST=rejections("roi.saved", "canvas"))
class RoiBulkApi(ApiView):
    """Draw, change, delete and restore ROIs of one canvas: all of it, or nothing."""

    area = TokenArea.ROIS
    parser_classes = (GeometryJsonParser,)
    body_limit_bytes = STEPS_BYTES
    body_limit_values = STEPS_VALUES
    renderer_classes = (RoiRowsRenderer,)

    @extend_schema(
        request=RoiBulkSerializer,
        responses={200: RoisChangedSerializer, 412: STALE},
        summary="Change many ROIs as one step",
    )
    def post(self, request: Request) -> Response:
        """Create, change, delete or restore up to 10,000 ROIs in one transaction.

        Each ROI gets a version of its own. A change that is already made has no effect, so the
        request can be repeated.
        """
        user = user_of(request)
        require_role_anywhere(user, at_least=Role.ANNOTATOR)  # before a large body is parsed
        body = RoiBulkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        canvas = canvas_get(user=user, canvas_id=body.validated_data["canvas"])
        set_audited_id(request, canvas.pk)
        changes = body.validated_data["changes"]
        labels = _labels(canvas, changes)
        properties_given(canvas.lab_id, *changes)
        steps = [_step(change, labels) for change in changes]
        try:
            rois_change(canvas=canvas, user=user, steps=steps)
        except StaleVersionError as error:
            stale = [uuid.UUID(roi_id) for roi_id in error.details["stale"]]
            error.details["stale"] = rois_represent(rois_by_id(user, canvas, stale))
            raise
        rows = roi_rows_by_id(user, canvas, [step.roi_id for step in steps])
        return Response({"rois": rows_text(rows)})


def _labels(canvas: Canvas, changes: list[Mapping[str, Any]]) -> dict[uuid.UUID, Label]:
    """Labels named by the changes; each must be one of the lab's."""
    label_ids = {change["label"] for change in changes if change.get("label")}
    labels = Label.objects.filter(lab_id=canvas.lab_id, pk__in=label_ids).in_bulk()
    if label_ids - labels.keys():
        raise InvalidInputError("label: no such label in this lab.", code="unknown-label")
    return labels


_PLAIN = ("geometry", "track", "name", "description", "properties", "shape", "is_locked")


def _step(change: Mapping[str, Any], labels: Mapping[uuid.UUID, Label]) -> RoiStep:
    plain_changes = {name: change[name] for name in _PLAIN if name in change}
    changes: RoiChanges = {**plain_changes}  # type: ignore[typeddict-item]
    if "label" in change:
        changes["label"] = labels[change["label"]] if change["label"] else None
    frame = change.get("frame") or {}
    return RoiStep(
        action=RoiAction(change["do"]),
        roi_id=change["id"],
        version=change.get("version"),
        changes=changes,
        frame_index=frame.get("index"),
        frame_pts=frame.get("pts"),
    )
