"""Cursor pagination of the API's lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.models import QuerySet
from drf_spectacular.plumbing import append_meta
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.utils.urls import remove_query_param, replace_query_param

from ml.types import JsonObject
from portal.core.database.keyset import Order
from portal.core.errors import InvalidInputError

CURSOR = "cursor"


@dataclass(frozen=True, slots=True)
class InOrder:
    """List in memory that ``Paging`` accepts like a query.

    Attributes:
        name: Name of the list, to which its cursors are bound.
        rows: Rows sorted by key.
        key: Unique key of a row, made of values that JSON preserves.
    """

    name: str
    rows: Sequence[Any]
    key: Callable[[Any], tuple[str | int | float, ...]]

    def values(self, row: Any) -> list[Any]:
        """Values of a row in the list's order, as JSON."""
        return list(self.key(row))

    def read(self, values: Sequence[Any]) -> list[Any]:
        """Inverse of ``values``."""
        return list(values)

    def beyond(self, after: Sequence[Any] | None, *, backward: bool) -> Sequence[Any]:
        """Rows beyond the row with these values, nearest first; None: from the end."""
        place = None if after is None else tuple(after)
        if backward:
            end = None if place is None else bisect_left(self.rows, place, key=self.key)
            return self.rows[:end][::-1]
        return self.rows[0 if place is None else bisect_right(self.rows, place, key=self.key) :]


@dataclass(frozen=True, slots=True)
class _Place:
    """Position after (or before) the row with these values; None: at the start (or end)."""

    values: list[Any] | None = None
    is_backward: bool = False


class Paging(CursorPagination):
    """Pages of ``?page_size=50`` rows, at most 200, with links ``next`` and ``previous``.

    Rows that are added or deleted do not shift the pages. A list has its order; there is no total
    count.

    DRF's cursor holds the first column of an order and how many equal rows to skip: rows without a
    value are lost, and so are others if skipped rows are deleted. The cursor here holds all columns
    (``portal.core.database.keyset``).
    """

    cursor_query_param = CURSOR
    cursor_query_description = "Taken from `next` or `previous` of a page"
    page_size: int = 50
    page_size_query_param = "page_size"
    page_size_query_description = "Objects on a page"
    max_page_size = 200

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Rows of the requested page.

        Raises:
            InvalidInputError: The cursor does not belong to this list in this order.
        """
        self.request = request
        size = self.get_page_size(request) or self.page_size
        order = queryset if isinstance(queryset, InOrder) else Order.of(queryset)
        list_name = order.name
        if isinstance(order, Order):
            list_name = f"{queryset.model._meta.label}:{list_name}"
        signer = signing.Signer(salt=f"paging:{list_name}")
        place = _place(request, order, signer)
        if isinstance(order, Order):
            rows = order.rows(queryset, after=place.values, backward=place.is_backward)
            beyond = self.read(rows[: size + 1])
        else:
            beyond = order.beyond(place.values, backward=place.is_backward)[: size + 1]
        page, has_more = list(beyond[:size]), len(beyond) > size
        if place.is_backward:
            page.reverse()
        self._link(place, page, order, signer, has_more=has_more)
        return page

    def _link(
        self, place: _Place, page: list[Any], order: Any, signer: signing.Signer, *, has_more: bool
    ) -> None:
        """Set the links of a page; those of an empty page lead to the nearest end."""
        url = self.request.build_absolute_uri()

        def link(values: list[Any] | None, *, backward: bool) -> str:
            return replace_query_param(url, CURSOR, signer.sign_object([values, backward]))

        is_inside = place.values is not None
        has_next, has_previous = has_more, is_inside
        if place.is_backward:
            has_next, has_previous = is_inside, has_more
        self.next = self.previous = None
        if page:
            self.next = link(order.values(page[-1]), backward=False) if has_next else None
            self.previous = link(order.values(page[0]), backward=True) if has_previous else None
        elif is_inside and place.is_backward:
            self.next = remove_query_param(url, CURSOR)
        elif is_inside:
            self.previous = link(None, backward=True)

    def read(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """Rows of a page, and one more if there are more."""
        return list(rows)

    def get_next_link(self) -> str | None:
        """Link to the next page; None at the end of the list."""
        return self.next

    def get_previous_link(self) -> str | None:
        """Link to the previous page; None at the beginning of the list."""
        return self.previous

    def get_paginated_response_schema(self, schema: JsonObject) -> JsonObject:
        """Schema of a page."""
        link = append_meta({"type": "string", "format": "uri"}, {"nullable": True})
        links = {"next": link, "previous": dict(link)}
        properties = {**links, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}


def _place(request: Request, order: Order | InOrder, signer: signing.Signer) -> _Place:
    cursor = request.query_params.get(CURSOR)
    if cursor is None:
        return _Place()
    try:
        values, is_backward = signer.unsign_object(cursor)
    except (signing.BadSignature, ValueError):
        raise InvalidInputError(
            f"{CURSOR}: this does not belong to this list in this order. Begin without it and "
            "follow `next`.",
            code="bad-cursor",
        ) from None
    return _Place(None if values is None else order.read(values), is_backward)
