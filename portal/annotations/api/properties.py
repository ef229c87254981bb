"""``/api/v1/labels/properties/``."""

from __future__ import annotations

import uuid
from collections.abc import Set
from dataclasses import asdict
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.properties import (
    KINDS,
    MAX_KEY_CHARS,
    MAX_PROPERTY_CHARS,
    MAX_UNIT_CHARS,
    types_etag,
)
from portal.annotations.selectors import labels as selectors
from portal.annotations.services.properties import property_types_set
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.etags import tags_sent
from portal.core.api.views import ApiView
from portal.core.errors import ConflictError, PreconditionRequiredError, StaleVersionError
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_chosen


class PropertyTypeInputSerializer(serializers.Serializer[Any]):
    """A property that a lab keeps, as clients send it."""

    key = serializers.CharField(max_length=MAX_KEY_CHARS)
    kind = serializers.ChoiceField(KINDS, required=False)
    choices = serializers.ListField(
        child=serializers.CharField(max_length=MAX_PROPERTY_CHARS),
        required=False,
        help_text="For the kind choice",
    )
    unit = serializers.CharField(
        max_length=MAX_UNIT_CHARS, required=False, allow_blank=True, help_text="For the kind number"
    )
    name = serializers.CharField(
        max_length=MAX_KEY_CHARS,
        required=False,
        allow_blank=True,
        help_text="The name that people see; if empty, the key. ROIs and files use the key",
    )
    retired = serializers.BooleanField(
        required=False, help_text="ROIs keep their values; it is not asked for on new ROIs"
    )


class PropertyTypeSerializer(serializers.Serializer[Any]):
    """A property that a lab keeps."""

    key = serializers.CharField()
    kind = serializers.ChoiceField(KINDS)
    choices = serializers.ListField(child=serializers.CharField(), help_text="For the kind choice")
    unit = serializers.CharField(help_text="For the kind number")
    name = serializers.CharField(help_text="The name that people see; if empty, the key")
    retired = serializers.BooleanField(help_text="It is not asked for on new ROIs")


class PropertyTypesSerializer(serializers.Serializer[Any]):
    """The properties of a lab, in their order."""

    lab = serializers.UUIDField()
    properties = PropertyTypeSerializer(many=True)
    etag = serializers.CharField(help_text="ETag of these properties")


class PropertyTypesInputSerializer(serializers.Serializer[Any]):
    """Properties of a lab, in their order, to replace its present ones."""

    lab = serializers.UUIDField(required=False)
    properties = PropertyTypeInputSerializer(many=True)
    etag = serializers.CharField(
        required=False,
        help_text="ETag of these properties. Send it with a change: 409 "
        "`properties-changed` if somebody changed them since",
    )


class PropertyTypesQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: the lab."""

    lab = serializers.UUIDField(required=False)
    canvas = serializers.UUIDField(required=False, help_text="The properties for this canvas")


@audited(PUT=rejections("properties.changed"))
class PropertyTypesApi(ApiView):
    """The properties that a lab keeps of its ROIs, and what their values are.

    The tag is the ``etag``, which may be sent back in the body in place of ``If-Match``.
    """

    area = TokenArea.ROIS
    if_match: ClassVar = {"PUT": False}

    @extend_schema(
        operation_id="label_properties_list",
        parameters=[PropertyTypesQuerySerializer],
        responses=PropertyTypesSerializer,
        summary="The properties of a lab",
    )
    def get(self, request: Request) -> Response:
        """List the property types. Keys without a type may have any value."""
        user = user_of(request)
        query = PropertyTypesQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        if canvas_id := data.get("canvas"):
            lab_id = canvas_get(user=user, canvas_id=canvas_id).lab_id
            if not has_role(user, lab_id, at_least=Role.VIEWER):  # shared: its words are not shown
                return Response({"lab": None, "properties": []})
        else:
            lab_id = lab_chosen(user, data.get("lab"), at_least=Role.VIEWER).pk
        return _property_types(lab_id)

    @extend_schema(
        operation_id="label_properties_set",
        request=PropertyTypesInputSerializer,
        responses=PropertyTypesSerializer,
        summary="Set the properties of a lab",
    )
    def put(self, request: Request) -> Response:
        """Replace all property types. Existing values of ROIs stay; new values must match the type.

        Requires If-Match, or the `etag` of the types that were read.
        """
        body = PropertyTypesInputSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        lab = lab_chosen(user_of(request), data.get("lab"), at_least=Role.MANAGER)
        header = request.headers.get("If-Match")
        if header is None and data.get("etag") is None:
            raise PreconditionRequiredError(
                "Send the ETag that you read as If-Match, or the `etag` that you read."
            )
        tags = tags_sent(header) if header is not None else None
        etag = data.get("etag") if tags is None else _etag_among(tags, lab.pk)
        try:
            property_types_set(lab=lab, user=user_of(request), types=data["properties"], etag=etag)
        except ConflictError as error:
            if error.code != "properties-changed" or header is None:
                raise
            now = _property_types(lab.pk)
            raise StaleVersionError(
                error.message, details={"current_version": now["ETag"], "current": now.data}
            ) from None
        return _property_types(lab.pk)


def _etag_among(tags: Set[str], lab_id: uuid.UUID) -> str:
    """The current etag if it is among the tags, else one that is not current."""
    now = types_etag(selectors.property_types_of(lab_id))
    return now if now in tags else next(iter(tags))


def _property_types(lab_id: uuid.UUID) -> Response:
    property_types = selectors.property_types_of(lab_id)
    types = [asdict(property_type) for property_type in property_types]
    data = {"lab": lab_id, "properties": types, "etag": types_etag(property_types)}
    tag = f'"{data["etag"]}"'
    return Response(PropertyTypesSerializer(data).data, headers={"ETag": tag})
