"""Paging of every list of the API."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination, PageNumberPagination

from ml.types import JsonObject


def _said(schema: JsonObject) -> JsonObject:
    """As OpenAPI 3.1 says that the first page has none before it, and the last none after."""
    for name in ("next", "previous"):
        schema["properties"][name] = {"type": ["string", "null"], "format": "uri"}
    return schema


class Paging(PageNumberPagination):
    """``?page=2&page_size=50``; at most 200 a page."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_paginated_response_schema(self, schema: JsonObject) -> JsonObject:
        """What a page looks like."""
        return _said(super().get_paginated_response_schema(schema))


class CursorPaging(CursorPagination):
    """For long lists that grow at their head: what comes meanwhile moves no page, and none costs
    more than the first. ``next`` leads on; there is no count.
    """

    page_size = Paging.page_size
    page_size_query_param = "page_size"
    max_page_size = Paging.max_page_size
    ordering = ("-created_at", "id")

    def get_paginated_response_schema(self, schema: JsonObject) -> JsonObject:
        """What a page looks like."""
        return _said(super().get_paginated_response_schema(schema))
