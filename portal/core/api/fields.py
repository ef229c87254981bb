"""Sparse answers: ``?fields=id,name`` leaves out the rest of each object."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
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
class Answered:
    """What a GET answers: one object of these fields, or a list of such."""

    names: frozenset[str]
    is_list: bool


_KNOWN: dict[tuple[type, str], Answered | None] = {}


class SparseFields:
    """A mixin of views. Put it before the other bases.

    Attributes:
        wanted: the names that were asked for; None: all.
    """

    wanted: frozenset[str] | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse unknown names before anything is read."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc] # of the view
        answered = _answered_by(self) if request.method in _READS else None
        if answered is not None and PARAMETER in request.GET:
            self.wanted = _wanted(request.GET[PARAMETER], answered.names)

    def wants(self, *names: str) -> bool:
        """Whether any of these is asked for."""
        return self.wanted is None or not self.wanted.isdisjoint(names)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Leave out what was not asked for."""
        is_answer = isinstance(response, Response) and response.status_code == 200
        if is_answer and self.wanted is not None:
            answered = _answered_by(self)
            is_list = answered is not None and answered.is_list
            response.data = _sparse(response.data, self.wanted, is_list=is_list)
        answer: Response = super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )
        return answer


def answered_of(said: Any, *, is_list: bool) -> Answered | None:
    """What is answered, by ``extend_schema`` or the view's serializer; None if it is not JSON."""
    if isinstance(said, dict):
        found = (one for code, one in said.items() if code in (200, "200", (200, _JSON)))
        said = next(found, None)
    said = said.response if isinstance(said, OpenApiResponse) else said
    if isinstance(said, type) and issubclass(said, BaseSerializer):
        said = said()
    if isinstance(said, ListSerializer):
        said, is_list = said.child, True
    if not isinstance(said, Serializer):
        return None
    names = (name for name, field in said.fields.items() if not field.write_only)
    return Answered(frozenset(names), is_list)


def described(answered: Answered) -> OpenApiParameter:
    """The parameter of an operation."""
    names: JsonObject = {"type": "string", "enum": sorted(answered.names)}
    return OpenApiParameter(
        PARAMETER,
        {"type": "array", "items": names, "minItems": 1},
        description="Names of fields, separated by commas; the others are left out",
        style="form",
        explode=False,
    )


def _answered_by(view: Any) -> Answered | None:
    """By the schema that the operation has; found once."""
    name = getattr(view, "action", None) or "get"
    handler = getattr(view, name, None)
    if handler is None:
        return None  # it has no GET
    if (type(view), name) not in _KNOWN:
        declared = getattr(handler, "kwargs", {}).get("schema")
        schema = copy.copy(declared() if declared else view.schema)  # one class may share one
        schema.view, schema.method, schema.path = view, "GET", view.request.path
        _KNOWN[type(view), name] = schema.answered()
    return _KNOWN[type(view), name]


def _wanted(said: str, known: frozenset[str]) -> frozenset[str]:
    names = frozenset(name.strip() for name in said.split(","))
    unknown = sorted(names - known)
    if unknown:
        raise InvalidInputError(
            f"fields: {', '.join(unknown)[:200] or 'nothing'}: unknown field; the fields are "
            f"{', '.join(sorted(known))}.",
            code="unknown-field",
            details={"unknown": unknown[:20], "known": sorted(known)},
        )
    return names


def _sparse(data: Any, wanted: frozenset[str], *, is_list: bool) -> Any:
    """Of a page its results, of a list its members, of an object itself."""
    if isinstance(data, list):
        return [_sparse(one, wanted, is_list=False) for one in data]
    if is_list:
        return data | {"results": _sparse(data["results"], wanted, is_list=False)}
    if isinstance(data, str):  # an object that is JSON already
        data = json.loads(data)
    return {name: value for name, value in data.items() if name in wanted}
