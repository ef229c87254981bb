"""OpenAPI: every operation says that its errors are problem+json."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from portal.core.api.conditions import ETAG, IF_MATCH, IF_MATCH_OPTIONAL, STALE
from portal.core.api.fields import Answered, answered_of, described
from portal.core.api.problems import CONTENT_TYPE, ProblemSerializer
from portal.core.api.views import ApiView, remembers, shows_one

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
        """``fields`` of what is read, ``Idempotency-Key`` where a POST remembers it, ``If-Match``
        where people may edit the same object.
        """
        parameters: list[Any] = list(super().get_override_parameters())
        if self.method == "GET" and (answered := self.answered()):
            parameters += [described(answered), IF_NONE_MATCH]
        if self.method == "POST" and remembers(self.view):
            parameters.append(IDEMPOTENCY_KEY)
        if isinstance(self.view, ApiView) and self.view.if_match:
            if (required := self.view.if_match.get(self.method)) is not None:
                parameters.append(IF_MATCH if required else IF_MATCH_OPTIONAL)
            if self.method != "DELETE" and shows_one(self.view, self.method):
                parameters.append(ETAG)
        return parameters

    def is_deprecated(self) -> bool:
        """Whether the view says when it goes."""
        return bool(super().is_deprecated()) or getattr(self.view, "leaving", None) is not None

    def answered(self) -> Answered | None:
        """What the operation answers, as a GET."""
        said = self.get_response_serializers()
        return answered_of(said, is_list=self._is_list_view(said))

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
        if self.method == "GET" and self.answered():
            bodies.setdefault("304", {"description": "Not changed"})
        return bodies
