"""``/api/v1/labels/``."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from portal.annotations import selectors
from portal.annotations.models import Label
from portal.annotations.serializers import LabelSerializer, label_represent
from portal.annotations.services import label_create, label_delete, label_set_ensure, label_update
from portal.archive.selectors import canvas_get
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen


class LabelQuerySerializer(serializers.Serializer[Label]):
    """Filters of the list of labels."""

    lab = serializers.UUIDField(required=False)
    canvas = serializers.UUIDField(required=False, help_text="The labels for this canvas")


class LabelApi(GenericViewSet[Label]):
    """The labels an ROI can carry. Managers maintain them."""

    area = TokenArea.ROIS
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
        """In the lab's order. A lab that has none yet gets a few to start with."""
        query = LabelQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        lab_id = query.validated_data.get("lab")
        if canvas_id := query.validated_data.get("canvas"):
            lab_id = canvas_get(user=user_of(request), canvas_id=canvas_id).lab_id
        for lab in selectors.labs_without_labels(user_of(request)):
            label_set_ensure(lab=lab)
        page = self.paginate_queryset(selectors.label_list(user_of(request), lab_id=lab_id))
        return self.get_paginated_response([label_represent(label) for label in page or []])

    @extend_schema(request=LabelSerializer, responses={201: LabelSerializer}, summary="Add a label")
    def create(self, request: Request) -> Response:
        """A person who manages one lab only may leave ``lab`` out. Without a colour it gets one."""
        body = LabelSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        label = label_create(
            lab=lab_chosen(user_of(request), data.get("lab_id"), at_least=Role.MANAGER),
            user=user_of(request),
            name=data["name"],
            color=data.get("color"),
            position=data.get("position"),
        )
        return Response(label_represent(label), status=status.HTTP_201_CREATED)

    @extend_schema(responses=LabelSerializer, summary="One label")
    def retrieve(self, request: Request, pk: str) -> Response:
        """A label by its id."""
        return Response(label_represent(selectors.label_get(user_of(request), uuid.UUID(pk))))

    @extend_schema(
        request=LabelSerializer(partial=True), responses=LabelSerializer, summary="Change a label"
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename, recolour or move; ROIs keep it."""
        label = selectors.label_get(user_of(request), uuid.UUID(pk))
        body = LabelSerializer(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        label = label_update(
            label=label,
            user=user_of(request),
            name=data.get("name"),
            color=data.get("color"),
            position=data.get("position"),
        )
        return Response(label_represent(label))

    @extend_schema(responses={204: None}, summary="Delete a label")
    def destroy(self, request: Request, pk: str) -> Response:
        """Only one that no ROI ever had; otherwise 409."""
        label = selectors.label_get(user_of(request), uuid.UUID(pk))
        label_delete(label=label, user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
