from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.decorators import api_view, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from portal.core.errors import ConflictError, NotFoundError, PortalError, StaleVersionError


def answer_to(error: Exception, method: str = "get") -> Any:
    """Response of the API when a view raises an error."""

    @api_view(["GET"])
    @permission_classes([])
    def view(request: Request) -> Response:
        raise error

    response = view(getattr(APIRequestFactory(), method)("/"))
    response.render()
    return response


class Colour(serializers.Serializer[Any]):
    red = serializers.IntegerField(max_value=255)


class Palette(serializers.Serializer[Any]):
    name = serializers.CharField()
    colours = Colour(many=True)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFoundError("No such case."), 404, "not-found"),
        (ConflictError("Taken.", code="taken"), 409, "taken"),
        (Http404(), 404, "not-found"),
        (exceptions.ParseError("Broken JSON."), 400, "parse-error"),
        (exceptions.UnsupportedMediaType("text/plain"), 415, "unsupported-media-type"),
        (exceptions.MethodNotAllowed("PATCH"), 405, "method-not-allowed"),
        (exceptions.Throttled(wait=7), 429, "throttled"),
    ],
)
def test_every_error_is_a_problem(error: Exception, status: int, code: str) -> None:
    response = answer_to(error)
    body = json.loads(response.content)
    assert response["Content-Type"] == "application/problem+json"
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["type"] == f"urn:tessera:problem:{code}"
    assert body["title"] and "{" not in body["title"]
    assert body["detail"]


def test_details_of_an_error_are_next_to_its_members() -> None:
    error = StaleVersionError("Now at version 4.", details={"current_version": 4})
    assert json.loads(answer_to(error).content)["current_version"] == 4


def test_a_validation_error_names_its_field() -> None:
    palette = Palette(data={"name": "x", "colours": [{"red": 1}, {"red": 999}]})
    with pytest.raises(exceptions.ValidationError) as caught:
        palette.is_valid(raise_exception=True)
    body = json.loads(answer_to(caught.value).content)
    assert body["code"] == "invalid-input"
    assert body["detail"].startswith("colours.1.red: ")
    assert body["errors"]["colours"]["1"]["red"][0]["code"] == "max_value"


def test_a_wrong_method_names_the_right_ones() -> None:
    response = answer_to(NotFoundError("never reached"), method="delete")
    assert response.status_code == 405
    assert "GET" in response["Allow"]


def test_retry_after_is_a_header() -> None:
    assert answer_to(exceptions.Throttled(wait=7))["Retry-After"] == "7"


def test_a_bug_is_not_dressed_as_a_problem() -> None:
    with pytest.raises(ZeroDivisionError):
        answer_to(ZeroDivisionError())


def test_errors_carry_status_code_and_title() -> None:
    for kind in PortalError.__subclasses__():
        assert 400 <= kind.status < 600
        assert kind.code
        assert kind.title
