"""RFC 9457 problem+json for every error the API answers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from ml.types import JsonObject
from portal.core.errors import NotFoundError, PortalError
from portal.core.observe import ids

CONTENT_TYPE = "application/problem+json"


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457. ``code`` is stable and meant for programs, ``detail`` for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()


def problem(
    *, status: int, code: str, title: str, detail: str, extra: JsonObject | None = None
) -> JsonObject:
    """The body of a problem+json answer."""
    body: JsonObject = {
        "type": f"urn:tessera:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if ids.request_id():
        body["request_id"] = ids.request_id()  # the id of this answer in the log
    return body | (extra or {})


def problem_of(error: PortalError) -> JsonObject:
    """The body for an error that people may read."""
    return problem(
        status=error.status,
        code=error.code,
        title=error.title,
        detail=error.message,
        extra=error.details,
    )


def problem_handler(error: Exception, context: JsonObject) -> Response | None:
    """DRF's exception handler: anything raised on purpose becomes problem+json."""
    if isinstance(error, Http404):
        error = NotFoundError("No such object.")
    if isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, PortalError):
        body, headers = problem_of(error), dict[str, str]()
        if "retry_after_s" in error.details:
            headers["Retry-After"] = str(error.details["retry_after_s"])
        if "window_s" in error.details:
            headers |= _rate_limit(error)
    elif isinstance(error, exceptions.APIException):
        body, headers = _from_api_exception(error), _headers(error, context)
    else:
        return None  # a bug: Django's 500
    set_rollback()
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _rate_limit(error: PortalError) -> dict[str, str]:
    """Headers of the exceeded limit by draft-ietf-httpapi-ratelimit-headers (10)."""
    details = error.details
    return {
        "RateLimit-Policy": f'"{error.code}";q={details["limit"]};w={details["window_s"]}',
        "RateLimit": f'"{error.code}";r=0;t={details["retry_after_s"]}',
    }


def _from_api_exception(error: exceptions.APIException) -> JsonObject:
    extra: JsonObject = {}
    code = str(getattr(error.detail, "code", None) or error.default_code).replace("_", "-")
    detail = str(error.detail)
    if isinstance(error, exceptions.ValidationError):
        code, extra = "invalid-input", {"errors": error.get_full_details()}
        detail = _first_sentence(error.detail)
    return problem(
        status=error.status_code,
        code=code,
        title=HTTPStatus(error.status_code).phrase,
        detail=detail,
        extra=extra,
    )


def _first_sentence(detail: Any, path: str = "") -> str:
    """The first validation message with the field it belongs to: ``accession: ...``."""
    if isinstance(detail, dict) and detail:
        key, value = next(iter(detail.items()))
        inner = "" if key in {"non_field_errors", "__all__"} else str(key)
        return _first_sentence(value, ".".join(part for part in (path, inner) if part))
    if isinstance(detail, list) and detail:
        first = next((item for item in detail if item), detail[0])
        return _first_sentence(first, path)
    return f"{path}: {detail}" if path else str(detail)


def _headers(error: exceptions.APIException, context: JsonObject) -> dict[str, str]:
    headers: dict[str, str] = {}
    if (scheme := getattr(error, "auth_header", None)) is not None:
        headers["WWW-Authenticate"] = scheme
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(int(wait))
    request = context.get("request")
    view = context.get("view")
    if isinstance(error, exceptions.MethodNotAllowed) and isinstance(request, Request) and view:
        headers["Allow"] = ", ".join(view.allowed_methods)
    return headers
