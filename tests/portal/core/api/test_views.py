"""Headers and schema of a deprecated view."""

from __future__ import annotations

from datetime import date
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from portal.core.api.views import ApiView, Deprecation


class StayingApi(ApiView):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        return Response({})


class LeavingApi(StayingApi):
    deprecation: ClassVar = Deprecation(since=date(2026, 1, 1), until=date(2027, 1, 1))


def test_deprecated_addresses_have_deprecation_and_sunset_headers() -> None:
    request = APIRequestFactory().get("/")
    answer = LeavingApi.as_view()(request)
    assert answer["Deprecation"] == "@1767225600"
    assert answer["Sunset"] == "Fri, 01 Jan 2027 00:00:00 GMT"
    assert parsedate_to_datetime(answer["Sunset"]).date() == date(2027, 1, 1)
    refused = LeavingApi.as_view()(APIRequestFactory().post("/"))
    assert (refused.status_code, refused["Sunset"]) == (405, answer["Sunset"])
    assert not {"Deprecation", "Sunset"} & set(StayingApi.as_view()(request).headers)


def test_the_schema_marks_deprecated_endpoints() -> None:
    patterns = [path("api/v1/a/", LeavingApi.as_view()), path("api/v1/b/", StayingApi.as_view())]
    made: Any = SchemaGenerator(patterns=patterns)  # type: ignore[no-untyped-call]
    schema = made.get_schema(request=None, public=True)["paths"]
    assert schema["/api/v1/a/"]["get"]["deprecated"] is True
    assert "deprecated" not in schema["/api/v1/b/"]["get"]
