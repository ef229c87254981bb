"""Sparse responses: ``?fields=id,name`` limits the fields of each object."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, ListSerializer, Serializer

from ml.types import JsonObject
from portal.core.errors import InvalidInputError

PARAMETER = "fields"
_READS = ("GET", "HEAD")
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ResponseFields:
    """Fields of the object, or of each object of the list, in a GET response."""

    names: frozenset[str]
    is_list: bool


_KNOWN: dict[tuple[type, str], ResponseFields | None] = {}


class SparseFields:
    """View mixin for the parameter ``fields``. Put it before the other bases.

    Attributes:
        requested_fields: The requested fields; None: all.
    """

    requested_fields: frozenset[str] | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse unknown field names before the view runs."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc] # of the view
        fields = _response_fields(self) if request.method in _READS else None
        if fields is not None and PARAMETER in request.GET:
            self.requested_fields = _parse_fields(request.GET[PARAMETER], fields.names)

    def wants(self, *names: str) -> bool:
        """Return whether any of these fields is requested."""
        return self.requested_fields is None or not self.requested_fields.isdisjoint(names)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Remove the fields that were not requested."""
        is_answer = isinstance(response, Response) and response.status_code == 200
        if is_answer and self.requested_fields is not None:
            fields = _response_fields(self)
            is_list = fields is not None and fields.is_list
            response.data = _sparse(response.data, self.requested_fields, is_list=is_list)
        answer: Response = super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )
        return answer


def response_fields_of(declared: Any, *, is_list: bool) -> ResponseFields | None:
    """Response declared by ``extend_schema`` or the view's serializer; None if it is not JSON."""
    if isinstance(declared, dict):
        successes = (
            response for code, response in declared.items() if code in (200, "200", (200, _JSON))
        )
        declared = next(successes, None)
    declared = declared.response if isinstance(declared, OpenApiResponse) else declared
    if isinstance(declared, type) and issubclass(declared, BaseSerializer):
        declared = declared()
    if isinstance(declared, ListSerializer):
        declared, is_list = declared.child, True
    if not isinstance(declared, Serializer):
        return None
    return ResponseFields(_readable_names(type(declared)), is_list)


@cache
def _readable_names(serializer: type[Serializer[Any]]) -> frozenset[str]:
    return frozenset(name for name, field in serializer().fields.items() if not field.write_only)


def fields_parameter(fields: ResponseFields) -> OpenApiParameter:
    """OpenAPI parameter ``fields`` of an operation."""
    names: JsonObject = {"type": "string", "enum": sorted(fields.names)}
    return OpenApiParameter(
        PARAMETER,
        {"type": "array", "items": names, "minItems": 1},
        description="Names of fields, separated by commas; the others are left out",
        style="form",
        explode=False,
    )


def _response_fields(view: Any) -> ResponseFields | None:
    """Response fields of a view by its schema, cached by class and action."""
    name = getattr(view, "action", None) or "get"
    handler = getattr(view, name, None)
    if handler is None:
        return None  # it has no GET
    if (type(view), name) not in _KNOWN:
        declared = getattr(handler, "kwargs", {}).get("schema")
        schema = copy.copy(declared() if declared else view.schema)  # one class may share one
        schema.view, schema.method, schema.path = view, "GET", view.request.path
        _KNOWN[type(view), name] = schema.response_fields()
    return _KNOWN[type(view), name]


def _parse_fields(text: str, allowed: frozenset[str]) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(","))
    unknown = sorted(names - allowed)
    if unknown:
        raise InvalidInputError(
            f"fields: {', '.join(unknown)[:200] or 'nothing'}: unknown field; the fields are "
            f"{', '.join(sorted(allowed))}.",
            code="unknown-field",
            details={"unknown": unknown[:20], "known": sorted(allowed)},
        )
    return names


def _sparse(data: Any, names: frozenset[str], *, is_list: bool) -> Any:
    """Reduce a page's results, a list's members, or an object to the requested fields."""
    if isinstance(data, list):
        return [_sparse(row, names, is_list=False) for row in data]
    if is_list:
        return data | {"results": _sparse(data["results"], names, is_list=False)}
    if isinstance(data, str):  # an object that is JSON already
        data = json.loads(data)
    return {name: value for name, value in data.items() if name in names}
