"""OpenAPI: every operation says that its errors are problem+json."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.contrib.django_filters import DjangoFilterExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import force_instance
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.fields import empty
from rest_framework.serializers import ModelSerializer

from portal.core.api.etags import ETAG, IF_MATCH, IF_MATCH_OPTIONAL, STALE
from portal.core.api.fields import ResponseFields, fields_parameter, response_fields_of
from portal.core.api.problems import CONTENT_TYPE, ProblemSerializer
from portal.core.api.views import WRITES, ApiView, shows_one

# It runs a compiler and ldconfig to look for GDAL otherwise.
DjangoFilterExtension._has_gis = False  # type: ignore[attr-defined]
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="Chosen by the client, 8 to 200 visible characters, preferably a UUID: the same "
    "request under the same key is carried out once. The same key with another request gives 422.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="The ETag of an answer read before: 304 if it is still the same",
)


class ProblemAutoSchema(AutoSchema):
    """Adds the ``default`` error answer to each operation, and what views have in common."""

    def get_override_parameters(self) -> list[Any]:
        """``fields`` of what is read, ``Idempotency-Key`` of writes, ``If-Match``
        where people may edit the same object.
        """
        parameters: list[Any] = list(super().get_override_parameters())
        if self.method == "GET" and (fields := self.response_fields()):
            parameters += [fields_parameter(fields), IF_NONE_MATCH]
        if isinstance(self.view, ApiView) and self._takes_key(self.view):
            parameters.append(IDEMPOTENCY_KEY)
        if isinstance(self.view, ApiView) and self.view.if_match:
            if (required := self.view.if_match.get(self.method)) is not None:
                parameters.append(IF_MATCH if required else IF_MATCH_OPTIONAL)
            if self.method != "DELETE" and shows_one(self.view, self.method):
                parameters.append(ETAG)
        return parameters

    def _takes_key(self, view: ApiView) -> bool:
        return self.method.lower() in WRITES and not view.takes_no_key

    def is_deprecated(self) -> bool:
        """Return whether the view says when it goes."""
        return bool(super().is_deprecated()) or getattr(self.view, "deprecation", None) is not None

    def response_fields(self) -> ResponseFields | None:
        """Response of the operation as a GET."""
        declared = self.get_response_serializers()
        return response_fields_of(declared, is_list=self._is_list_view(declared))

    def _map_basic_serializer(
        self, serializer: Any, direction: Literal["request", "response"]
    ) -> dict[str, Any]:
        """Require in answers what is always in them, not only what a request must have.

        A model serializer answers with all its fields, others with those that have a default.
        """
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction == "response":
            instance = force_instance(serializer)  # type: ignore[no-untyped-call]
            is_of_model = isinstance(instance, ModelSerializer)
            always = {
                name
                for name in schema.get("properties", {})
                if is_of_model or instance.fields[name].default is not empty
            }
            if required := always | set(schema.get("required", ())):
                schema["required"] = sorted(required)
        return schema

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        answer = self._get_response_for_code(  # type: ignore[no-untyped-call]
            OpenApiResponse(ProblemSerializer, description="An error"),
            "default",
            media_types=[CONTENT_TYPE],
            direction=direction,
        )
        bodies.setdefault("default", answer)
        if isinstance(self.view, ApiView) and self.method in self.view.if_match:
            stale = self._get_response_for_code(  # type: ignore[no-untyped-call]
                STALE, "412", media_types=[CONTENT_TYPE], direction=direction
            )
            bodies.setdefault("412", stale)
        if self.method == "GET" and self.response_fields():
            bodies.setdefault("304", {"description": "Not changed"})
        return bodies
