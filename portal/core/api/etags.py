"""ETags: 304 for unchanged responses, and ``If-Match`` against lost updates.

Responses are tagged by their bytes. ``If-Match`` compares the tag of the edited fields
(``edit_tag``), or the version of an ROI.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK, HTTP_201_CREATED

from portal.core.api.problems import ProblemSerializer
from portal.core.database.locks import transaction_lock
from portal.core.errors import (
    InvalidInputError,
    NotFoundError,
    PreconditionRequiredError,
    StaleVersionError,
)
from portal.core.models import BaseModel, edit_tag

TAGGED = (HTTP_200_OK, HTTP_201_CREATED)
_READS = ("GET", "HEAD")
_VERSION = re.compile(r"\d{1,9}", re.ASCII)

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag of the version that the change was made from, or `*` for any version. "
    "428 without it, 412 if stale.",
)
IF_MATCH_OPTIONAL = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="The ETag that was read; 412 if stale.",
)
ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=[200], description="For If-Match."
)
ETAG_MADE = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[201],
    description="For If-Match: of what was made.",
)
STALE = OpenApiResponse(
    ProblemSerializer,
    "Stale: the body also has `current_version`, the ETag, and `current`, the object as it is.",
)

IF_MATCH_VERSION = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description=(
        'The ETag of the version that the change was made from, such as `"3"`. 428 without it, 412'
        " if stale."
    ),
)


class TaggedAnswers:
    """View mixin that adds ETags; put it before the other bases.

    Responses to reads are tagged by their bytes unless the view set a tag. Files and streams tag
    themselves. Browsers do not cache responses unless the view allows it, because they name
    patients.

    Attributes:
        has_own_tags: The view sets tags that do not depend on the whole response, such as the
            version of an ROI.
        edit_tag: Edit tag of the object in the response; empty if it cannot be edited.
    """

    has_own_tags = False
    edit_tag = ""

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the tag once the response is rendered."""
        answer: Response = super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )
        has_tag = request.method in _READS or self.edit_tag
        if has_tag and answer.status_code in TAGGED and isinstance(answer, Response):
            callback = partial(
                _set_etag, request._request, has_own_tags=self.has_own_tags, edit_tag=self.edit_tag
            )
            answer.add_post_render_callback(callback)
        return answer


def tag_of(content: bytes, *, edit_tag: str = "") -> str:
    """ETag of a response.

    The part before the dot is the edit tag, the only part that ``If-Match`` compares, so that a
    counter in the response does not refuse a change. The rest is a hash of the whole response.
    """
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    return quote_etag(f"{edit_tag}.{digest}" if edit_tag else digest)


def version_tag(version: int) -> str:
    """ETag of a row with a version number: ``"3"``."""
    return quote_etag(str(version))


def tags_sent(header: str) -> frozenset[str] | None:
    """Tags of an ``If-Match`` header without quotes; None for ``*``.

    Weak tags are accepted, because proxies that compress responses weaken them and edit tags do
    not depend on bytes.
    """
    tags = [tag.strip() for tag in header.split(",")]
    if tags == ["*"]:
        return None
    return frozenset(tag.removeprefix("W/").strip('"') for tag in tags)


def version_expected(request: Request) -> int:
    """Version in ``If-Match``.

    Raises:
        PreconditionRequiredError: The header is missing.
        InvalidInputError: It is not a single tag of ``version_tag``.
    """
    version = version_expected_or_none(request)
    if version is None:
        raise PreconditionRequiredError(
            'Send the ETag that you read as If-Match, for example If-Match: "3".'
        )
    return version


def version_expected_or_none(request: Request) -> int | None:
    """Version from ``version_expected``; None if the header is missing."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    tags = list(tags_sent(header) or ())
    if len(tags) != 1 or not _VERSION.fullmatch(tags[0]):
        raise InvalidInputError(
            'If-Match: expected one ETag, exactly as it was read, for example "3".'
        )
    return int(tags[0])


def require_match(request: Request, row: BaseModel, *, required: bool) -> None:
    """Refuse a change made from an older version; lock the row if ``If-Match`` has tags.

    Raises:
        PreconditionRequiredError: ``If-Match`` is required and missing.
        NotFoundError: The row was deleted since it was read.
        StaleVersionError: None of the tags is the current one.
    """
    header = request.headers.get("If-Match")
    if header is None and required:
        raise PreconditionRequiredError(
            "Send the ETag that you read as If-Match, or If-Match: * for any version."
        )
    tags = None if header is None else tags_sent(header)
    if tags is not None:
        _require_one_of({tag.partition(".")[0] for tag in tags}, row)


@contextmanager
def edited_by_page(request: HttpRequest, row: BaseModel) -> Iterator[None]:
    """Transaction of a form's change, if the row still has the edit tag that the form sends.

    Raises:
        StaleVersionError: The row was changed since; nothing was written.
    """
    with transaction.atomic():
        if shown_etag := request.POST.get("edit_tag"):
            _require_one_of({shown_etag}, row)
        yield


def _require_one_of(tags: Set[str], row: BaseModel) -> None:
    if edit_tag(_lock_row(row)) not in tags:
        raise StaleVersionError("Someone else changed this since you read it. Nothing was written.")


def _lock_row(row: BaseModel) -> BaseModel:
    """Read the current row and lock it until the transaction ends."""
    if row._state.adding:  # a row that does not exist yet is locked by a name
        transaction_lock(f"edited {type(row).__name__} {_lab_of(row)}")
    now = present(row, is_locked=True)
    if now is row and not row._state.adding:
        raise NotFoundError("This has been deleted in the meantime.")
    return now


def present(row: BaseModel, *, is_locked: bool = False) -> BaseModel:
    """Current state of the row; the row itself if it is not stored yet (default settings)."""
    rows: Any = type(row)._base_manager
    rows = rows.select_for_update() if is_locked else rows.all()
    lab_id = _lab_of(row)
    matching = (
        rows.filter(lab_id=lab_id) if row._state.adding and lab_id else rows.filter(pk=row.pk)
    )
    return matching.first() or row


def _lab_of(row: BaseModel) -> Any:
    return getattr(row, "lab_id", None)


def _set_etag(
    request: HttpRequest, answer: HttpResponse, *, has_own_tags: bool, edit_tag: str
) -> HttpResponse | None:
    """Tag a response; returns a 304 in its place if the client has it, else None."""
    is_not_stored = "no-store" in answer.get("Cache-Control", "") and not edit_tag
    if is_not_stored or (has_own_tags and "ETag" in answer):
        return None
    if "ETag" not in answer:
        answer["ETag"] = tag_of(answer.content, edit_tag=edit_tag)
    if request.method not in _READS:
        return None
    conditional = get_conditional_response(request, etag=answer["ETag"], response=answer)
    if conditional is None or conditional is answer:
        return None
    for name, value in answer.items():
        if name != "Content-Type":
            conditional.setdefault(name, value)
    return conditional
