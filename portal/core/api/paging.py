"""Paging of every list of the API: by cursor."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from ml.types import JsonObject
from portal.core.database.keyset import Order
from portal.core.errors import InvalidInputError

CURSOR, SIZE = "cursor", "page_size"
_LINK: JsonObject = {"type": ["string", "null"], "format": "uri"}


@dataclass(frozen=True, slots=True)
class InOrder:
    """A list made in memory, which ``Paging`` takes like a query.

    Attributes:
        name: of what is listed; a cursor belongs to one such list.
        rows: in the order of their keys.
        key: of a row, made of values that JSON keeps as they are; no two rows have the same.
    """

    name: str
    rows: Sequence[Any]
    key: Callable[[Any], tuple[str | int | float, ...]]

    def values(self, row: Any) -> list[Any]:
        """Where a row stands, as JSON has it."""
        return list(self.key(row))

    def read(self, values: Sequence[Any]) -> list[Any]:
        """The reverse of ``values``."""
        return list(values)

    def beyond(self, after: Sequence[Any] | None, *, backward: bool) -> Sequence[Any]:
        """All rows beyond the one with these values, nearest first; None: from the end."""
        place = None if after is None else tuple(after)
        if backward:
            end = None if place is None else bisect_left(self.rows, place, key=self.key)
            return self.rows[:end][::-1]
        return self.rows[0 if place is None else bisect_right(self.rows, place, key=self.key) :]


@dataclass(frozen=True, slots=True)
class _Place:
    """Behind the row with these values, or before it; None: from the beginning, or the end."""

    values: list[Any] | None = None
    is_backward: bool = False


class Paging(BasePagination):
    """Pages of ``?page_size=50`` rows, at most 200, with links ``next`` and ``previous``.

    Rows that come or go meanwhile move no page. A list has its order; there is no total count.
    """

    page_size = 50
    max_page_size = 200

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of the page that is asked for.

        Raises:
            InvalidInputError: the cursor does not belong to this list in this order.
        """
        self.request = request
        size = self.get_page_size(request)
        order = queryset if isinstance(queryset, InOrder) else Order.of(queryset)
        told = order.name
        if isinstance(order, Order):
            told = f"{queryset.model._meta.label}:{told}"
        signer = signing.Signer(salt=f"paging:{told}")
        place = _place(request, order, signer)
        if isinstance(order, Order):
            rows = order.rows(queryset, after=place.values, backward=place.is_backward)
            found = self.read(rows[: size + 1])
        else:
            found = order.beyond(place.values, backward=place.is_backward)[: size + 1]
        page, has_more = list(found[:size]), len(found) > size
        if place.is_backward:
            page.reverse()
        self._link(place, page, order, signer, has_more=has_more)
        return page

    def _link(
        self, place: _Place, page: list[Any], order: Any, signer: signing.Signer, *, has_more: bool
    ) -> None:
        """The links beside a page; from a page that has become empty, to the nearest end of the
        list.
        """
        here = self.request.build_absolute_uri()

        def link(values: list[Any] | None, *, backward: bool) -> str:
            return replace_query_param(here, CURSOR, signer.sign_object([values, backward]))

        is_inside = place.values is not None
        has_next, has_previous = has_more, is_inside
        if place.is_backward:
            has_next, has_previous = is_inside, has_more
        self.next = self.previous = None
        if page:
            self.next = link(order.values(page[-1]), backward=False) if has_next else None
            self.previous = link(order.values(page[0]), backward=True) if has_previous else None
        elif is_inside and place.is_backward:
            self.next = remove_query_param(here, CURSOR)
        elif is_inside:
            self.previous = link(None, backward=True)

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
                "description": (
                    "Taken from `next` or `previous` of a page; it has no meaning of its own"
                ),
                "schema": {"type": "string"},
            },
            {
                "name": SIZE,
                "in": "query",
                "required": False,
                "description": f"Objects on a page, at most {self.max_page_size}",
                "schema": size,
            },
        ]


def _place(request: Request, order: Order | InOrder, signer: signing.Signer) -> _Place:
    said = request.query_params.get(CURSOR)
    if said is None:
        return _Place()
    try:
        values, is_backward = signer.unsign_object(said)
    except (signing.BadSignature, ValueError):
        raise InvalidInputError(
            f"{CURSOR}: this does not belong to this list in this order. Begin without it and "
            "follow `next`.",
            code="bad-cursor",
        ) from None
    return _Place(None if values is None else order.read(values), is_backward)
