"""Paging of every list of the API: by cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from ml.types import JsonObject
from portal.core.database.keyset import Order
from portal.core.errors import InvalidInputError

CURSOR, SIZE = "cursor", "page_size"
_LINK: JsonObject = {"type": ["string", "null"], "format": "uri"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Behind the row with these values, or before it; None: the first page."""

    values: list[Any] | None = None
    is_backward: bool = False


class Paging(BasePagination):
    """``?page_size=50``, and on by the addresses ``next`` and ``previous``; at most 200 a page.

    What comes or goes meanwhile moves no page. A list says its order; there is no count of it all.
    """

    page_size = 50
    max_page_size = 200

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of the page that is asked for.

        Raises:
            InvalidInputError: the cursor is none of this list in this order.
        """
        self.request = request
        size, order = self.get_page_size(request), Order.of(queryset)
        signer = signing.Signer(salt=f"paging:{queryset.model._meta.label}:{order.name}")
        place = _place(request, order, signer)
        rows = order.rows(queryset, after=place.values, backward=place.is_backward)
        found = self.read(rows[: size + 1])
        page, has_more = list(found[:size]), len(found) > size
        if place.is_backward:
            page.reverse()

        def link(at: int, *, backward: bool) -> str | None:
            if not page:
                return None
            told = signer.sign_object([order.values(page[at]), backward])
            return replace_query_param(request.build_absolute_uri(), CURSOR, told)

        is_first = place.values is None
        self.next = link(-1, backward=False) if has_more or place.is_backward else None
        comes_after = has_more if place.is_backward else not is_first
        self.previous = link(0, backward=True) if comes_after else None
        return page

    def read(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """The rows of a page, and one more where there are more."""
        return list(rows)

    def get_page_size(self, request: Request) -> int:
        """As many as are asked for, at most ``max_page_size``."""
        said = request.query_params.get(SIZE, "").strip()
        if not said:
            return self.page_size
        if not (said.isascii() and said.isdecimal() and said.strip("0")):
            raise InvalidInputError(
                f"{SIZE}: expected a whole number from 1 to {self.max_page_size}."
            )
        return min(int(said.lstrip("0")[:9]), self.max_page_size)

    def get_paginated_response(self, data: Any) -> Response:
        """The page with the addresses of those beside it."""
        return Response({"next": self.next, "previous": self.previous, "results": data})

    def get_paginated_response_schema(self, schema: JsonObject) -> JsonObject:
        """What a page looks like."""
        links = {"next": dict(_LINK), "previous": dict(_LINK)}
        properties = {**links, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[JsonObject]:
        """What a list takes."""
        size = {"type": "integer", "minimum": 1, "default": self.page_size}
        return [
            {
                "name": CURSOR,
                "in": "query",
                "required": False,
                "description": "Out of `next` or `previous` of a page; it says nothing by itself",
                "schema": {"type": "string"},
            },
            {
                "name": SIZE,
                "in": "query",
                "required": False,
                "description": f"So many a page; of more than {self.max_page_size} come that many",
                "schema": size,
            },
        ]


def _place(request: Request, order: Order, signer: signing.Signer) -> _Place:
    said = request.query_params.get(CURSOR)
    if said is None:
        return _Place()
    try:
        values, is_backward = signer.unsign_object(said)
    except (signing.BadSignature, ValueError):
        raise InvalidInputError(
            f"{CURSOR}: this is none of this list in this order. Begin without it, and follow"
            " `next`.",
            code="bad-cursor",
        ) from None
    return _Place(order.read(values), is_backward)
