"""ETag and If-Match: the version of an ROI is its entity tag."""

from __future__ import annotations

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.core.errors import InvalidInputError, PreconditionRequiredError

_TAG = re.compile(r'\s*(?:W/)?"?(\d{1,9})"?\s*\Z', re.ASCII)

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description='The ETag the change was made from, such as `"3"`. 428 without it, 412 if stale.',
)
IF_MATCH_OPTIONAL = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=False, description="As for a change."
)


def etag(version: int) -> str:
    """``"3"``, quoted as the header wants it."""
    return f'"{version}"'


def expected_version(request: Request) -> int:
    """The version named by ``If-Match``; 428 where there is none."""
    version = expected_version_or_none(request)
    if version is None:
        raise PreconditionRequiredError(
            'Send the ETag you read as If-Match, for example If-Match: "3".'
        )
    return version


def expected_version_or_none(request: Request) -> int | None:
    """The version named by ``If-Match``, or None where the header is missing."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    match = _TAG.match(header)
    if match is None:
        raise InvalidInputError('If-Match: expected one ETag as it was read, for example "3".')
    return int(match[1])
