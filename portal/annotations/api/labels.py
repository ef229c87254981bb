"""``/api/v1/labels/``."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.models import Label, LabelSetVersion
from portal.annotations.selectors import labels as selectors
from portal.annotations.serializers import INT32_MAX
from portal.annotations.services.labels import (
    LabelChanges,
    label_create,
    label_delete,
    label_set_ensure,
    label_set_publish,
    label_update,
    labels_order,
)
from portal.annotations.services.merges import label_merge, label_merge_preview, label_merge_undo
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.etags import ETAG_MADE
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Role, TokenArea, User
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen


class LabelSerializer(serializers.Serializer[Any]):
    """A label."""

    id = serializers.UUIDField()
    lab = serializers.UUIDField(source="lab_id")
    name = serializers.CharField()
    color = serializers.CharField(help_text="#rrggbb")
    position = serializers.IntegerField()
    parent = serializers.UUIDField(  # type: ignore[assignment]
        allow_null=True, help_text="The label directly above it"
    )
    key = serializers.CharField(help_text="1 to 9, or empty")
    retired = serializers.BooleanField(
        help_text="Not offered for new ROIs; ROIs that have it keep it"
    )
    merged_into = serializers.UUIDField(allow_null=True)


class LabelInputSerializer(serializers.Serializer[Any]):
    """A label as clients send it."""

    lab = serializers.UUIDField(source="lab_id", required=False)
    name = serializers.CharField(max_length=80)
    color = serializers.RegexField(r"^#[0-9a-fA-F]{6}$", required=False, help_text="#rrggbb")
    position = serializers.IntegerField(min_value=0, max_value=INT32_MAX, required=False)
    parent = serializers.UUIDField(  # type: ignore[assignment]
        required=False, allow_null=True, help_text="The label directly above it"
    )
    key = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=1,
        help_text="1 to 9; taken from the label that has it",
    )
    retired = serializers.BooleanField(
        required=False, help_text="Not offered for new ROIs; ROIs that have it keep it"
    )


class LabelOrderRowSerializer(serializers.Serializer[Label]):
    """A label and its parent."""

    id = serializers.UUIDField()
    parent = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]


class LabelOrderSerializer(serializers.Serializer[Label]):
    """All labels of a lab."""

    lab = serializers.UUIDField(required=False)
    labels = LabelOrderRowSerializer(many=True)


class LabelMergeRequestSerializer(serializers.Serializer[Label]):
    """Target of a label merge."""

    into = serializers.UUIDField()
    preview = serializers.BooleanField(default=False)


class LabelMergeSerializer(serializers.Serializer[Any]):
    """Extent of a label merge."""

    id = serializers.UUIDField(allow_null=True, help_text="null for a preview")
    rois = serializers.IntegerField()
    canvases = serializers.IntegerField()
    cases = serializers.IntegerField()
    locked = serializers.IntegerField(
        help_text="How many of these ROIs are locked; they are relabelled too"
    )


class LabelMergeUndoneSerializer(serializers.Serializer[Any]):
    """Number of ROIs that an undone merge changed back."""

    reverted = serializers.IntegerField()
    skipped = serializers.IntegerField(help_text="Changed by somebody since then")


class FrozenLabelSerializer(serializers.Serializer[Any]):
    """A label as it was published."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    color = serializers.CharField()
    key = serializers.CharField(allow_blank=True)
    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]


class LabelVersionSerializer(serializers.Serializer[LabelSetVersion]):
    """A published version."""

    lab = serializers.UUIDField(source="lab_id", required=False)
    number = serializers.IntegerField(read_only=True)
    note = serializers.CharField(required=False, allow_blank=True, max_length=200)
    labels = FrozenLabelSerializer(many=True, read_only=True)
    published_by = serializers.CharField(read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True)


class LabelVersionQuerySerializer(serializers.Serializer[LabelSetVersion]):
    """Query parameters: the lab."""

    lab = serializers.UUIDField(required=False)


class LabelQuerySerializer(serializers.Serializer[Label]):
    """Filters of the list of labels."""

    lab = serializers.UUIDField(required=False)
    canvas = serializers.UUIDField(required=False, help_text="The labels for this canvas")


@audited(
    list=None,
    create=rejections("label.saved"),
    retrieve=None,
    partial_update=rejections("label.saved", "label", "pk"),
    destroy=rejections("label.deleted", "label", "pk"),
    merge=rejections("label.merged", "label", "pk"),
)
class LabelApi(ApiViewSet[Label]):
    """The labels an ROI can carry. Managers maintain them."""

    area = TokenArea.ROIS
    if_match: ClassVar = {"PATCH": True, "DELETE": False}
    queryset = Label.objects.none()
    serializer_class = LabelSerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    @extend_schema(
        parameters=[LabelQuerySerializer],
        responses=LabelSerializer(many=True),
        summary="List labels",
    )
    def list(self, request: Request) -> Response:
        """List the labels in the lab's order. A lab without labels gets a set to start with."""
        query = LabelQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        lab_id = query.validated_data.get("lab")
        if canvas_id := query.validated_data.get("canvas"):
            lab_id = canvas_get(user=user_of(request), canvas_id=canvas_id).lab_id
        for lab in selectors.labs_without_labels(user_of(request)):
            label_set_ensure(lab=lab)
        page = self.paginate_queryset(selectors.label_list(user_of(request), lab_id=lab_id))
        return self.get_paginated_response([label_represent(label) for label in page or []])

    @extend_schema(
        parameters=[ETAG_MADE],
        request=LabelInputSerializer,
        responses={201: LabelSerializer},
        summary="Add a label",
    )
    def create(self, request: Request) -> Response:
        """Create a label.

        ``lab`` may be omitted by a person who manages one lab only; a missing colour is chosen.
        """
        body = LabelInputSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        label = label_create(
            lab=lab_chosen(user_of(request), data.get("lab_id"), at_least=Role.MANAGER),
            user=user_of(request),
            name=data["name"],
            color=data.get("color"),
            position=data.get("position"),
            parent=_parent(user_of(request), data.get("parent")),
        )
        return Response(
            label_represent(self.register_created(label)), status=status.HTTP_201_CREATED
        )

    @extend_schema(responses=LabelSerializer, summary="One label")
    def retrieve(self, request: Request, pk: str) -> Response:
        """A label by its id."""
        return Response(label_represent(self._label(request, pk)))

    @extend_schema(
        request=LabelInputSerializer(partial=True),
        responses=LabelSerializer,
        summary="Change a label",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename, recolour, move or retire a label.

        ROIs keep it; earlier versions keep its former name.
        """
        label = self._label(request, pk)
        body = LabelInputSerializer(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        changes: LabelChanges = {**data}  # type: ignore[typeddict-item]
        changes.pop("lab_id", None)  # type: ignore[typeddict-item]
        if "parent" in data:
            changes["parent"] = _parent(user_of(request), data["parent"])
        label = label_update(label=label, user=user_of(request), changes=changes)
        return Response(label_represent(label))

    @extend_schema(responses={204: None}, summary="Delete a label")
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a label that no ROI has ever had; otherwise 409."""
        label = self._label(request, pk)
        label_delete(label=label, user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        request=LabelMergeRequestSerializer,
        responses={200: LabelMergeSerializer},
        summary="Merge a label into another",
    )
    @action(detail=True, methods=["post"])
    def merge(self, request: Request, pk: str) -> Response:
        """Give the ROIs of a label another label and remove it. With `preview`, nothing is changed.

        Undo: `POST /label-merges/{id}/undo/` with the returned `id`.
        """
        user = user_of(request)
        source = selectors.label_get(user, uuid.UUID(pk))
        body = LabelMergeRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        target = selectors.label_get(user, body.validated_data["into"])
        preview = label_merge_preview(source=source, target=target, user=user)
        merge = None
        if not body.validated_data["preview"]:
            merge = label_merge(source=source, target=target, user=user)
        data = {
            "id": merge.pk if merge else None,
            "rois": preview.rois,
            "canvases": preview.canvases,
        }
        data |= {"cases": preview.cases, "locked": preview.locked}
        return Response(LabelMergeSerializer(data).data)

    def representation(self, row: Label) -> JsonObject:
        """Representation of a label in answers."""
        return label_represent(row)

    def _label(self, request: Request, pk: str) -> Label:
        return self.register(selectors.label_get(user_of(request), uuid.UUID(pk)))


@audited(POST=rejections("label.saved"))
class LabelOrderApi(ApiView):
    """The order and the hierarchy of a lab's labels."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="labels_order",
        request=LabelOrderSerializer,
        responses=LabelSerializer(many=True),
        summary="Order labels",
    )
    def post(self, request: Request) -> Response:
        """Set the order of all labels of the lab that are not retired."""
        body = LabelOrderSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        lab = lab_chosen(user_of(request), data.get("lab"), at_least=Role.MANAGER)
        order = [(entry["id"], entry.get("parent")) for entry in data["labels"]]
        labels = labels_order(lab=lab, user=user_of(request), order=order)
        return Response([label_represent(label) for label in labels])


@audited(POST=rejections("label.merge_undone"))
class LabelMergeUndoApi(ApiView):
    """Undo a merge of labels."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="label_merges_undo",
        request=None,
        responses=LabelMergeUndoneSerializer,
        summary="Undo a merge of labels",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Restore the label with its key and its sublabels, unless these were reused or moved.

        ROIs that were changed after the merge keep their present label.
        """
        merge = selectors.label_merge_get(user_of(request), id)
        undone = label_merge_undo(merge=merge, user=user_of(request))
        return Response(LabelMergeUndoneSerializer(undone).data)


@audited(list=None, create=rejections("label_version.published"))
class LabelVersionApi(ApiViewSet[LabelSetVersion]):
    """Published versions of a lab's labels: frozen."""

    area = TokenArea.ROIS
    queryset = LabelSetVersion.objects.none()
    serializer_class = LabelVersionSerializer
    filter_backends = ()

    @extend_schema(
        parameters=[LabelVersionQuerySerializer],
        responses=LabelVersionSerializer(many=True),
        summary="List published versions of labels",
    )
    def list(self, request: Request) -> Response:
        """Published versions, newest first."""
        query = LabelVersionQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        versions = selectors.label_versions(
            user_of(request), lab_id=query.validated_data.get("lab")
        )
        page = self.paginate_queryset(versions) or []
        data = [LabelVersionSerializer(version).data for version in page]
        return self.get_paginated_response(data)

    @extend_schema(
        request=LabelVersionSerializer,
        responses={201: LabelVersionSerializer},
        summary="Publish the present labels",
    )
    def create(self, request: Request) -> Response:
        """Publish the present labels as a version. 409 if nothing changed since the last one."""
        body = LabelVersionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        lab = lab_chosen(user_of(request), data.get("lab_id"), at_least=Role.MANAGER)
        version = label_set_publish(lab=lab, user=user_of(request), note=data.get("note", ""))
        return Response(LabelVersionSerializer(version).data, status=status.HTTP_201_CREATED)


def _parent(user: User, label_id: uuid.UUID | None) -> Label | None:
    return selectors.label_get(user, label_id) if label_id else None


def label_represent(label: Label) -> JsonObject:
    """A label."""
    return {
        "id": str(label.pk),
        "lab": str(label.lab_id),
        "name": label.name,
        "color": label.color,
        "position": label.position,
        "parent": str(label.parent_id) if label.parent_id else None,
        "key": label.key,
        "retired": label.retired_at is not None,
        "merged_into": str(label.merged_into_id) if label.merged_into_id else None,
    }
