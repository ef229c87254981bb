"""ETag and If-Match: the version of an ROI is the tag. Idempotency-Key: a write is done once."""

from __future__ import annotations

import hashlib
import json
import re
from typing import IO

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.annotations.services import Once
from portal.core.api.answers import key_checked
from portal.core.errors import InvalidInputError, PreconditionRequiredError
from portal.labs.requests import user_of

_TAG = re.compile(r'\s*(?:W/)?"?(\d{1,9})"?\s*\Z', re.ASCII)

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description=(
        'The ETag of the version that the change was made from, such as `"3"`. 428 without it, 412'
        " if stale."
    ),
)
IF_MATCH_OPTIONAL = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="The same as for a change.",
)


def once(request: Request) -> Once | None:
    """What names this write, or None if no ``Idempotency-Key`` was sent."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    asked = json.dumps([request.method, request.path, request.data], sort_keys=True, default=str)
    return Once.of(user_of(request), key=key_checked(key), request=asked)


def once_of_file(request: Request, file: IO[bytes]) -> Once | None:
    """As ``once``, for a request whose body is a file."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    key = key_checked(key)
    digest = hashlib.sha256(json.dumps(sorted(request.query_params.items())).encode())
    file.seek(0)
    while piece := file.read(2**20):
        digest.update(piece)
    asked = f"{request.path} {digest.hexdigest()}"
    return Once.of(user_of(request), key=key, request=asked)


def etag(version: int) -> str:
    """``"3"``, quoted as the header wants it."""
    return f'"{version}"'


def expected_version(request: Request) -> int:
    """The version named by ``If-Match``; 428 if there is none."""
    version = expected_version_or_none(request)
    if version is None:
        raise PreconditionRequiredError(
            'Send the ETag that you read as If-Match, for example If-Match: "3".'
        )
    return version


def expected_version_or_none(request: Request) -> int | None:
    """The version named by ``If-Match``, or None if the header is missing."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    match = _TAG.match(header)
    if match is None:
        raise InvalidInputError(
            'If-Match: expected one ETag, exactly as it was read, for example "3".'
        )
    return int(match[1])
