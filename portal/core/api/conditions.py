"""ETag and If-Match of what people edit: a change is made from what its sender saw."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from portal.core.api.problems import ProblemSerializer
from portal.core.database.locks import transaction_lock
from portal.core.errors import NotFoundError, PreconditionRequiredError, StaleVersionError
from portal.core.models import BaseModel, edit_tag

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


def tags_sent(header: str) -> frozenset[str] | None:
    """The tags of an ``If-Match``, without quotes; None if any version will do.

    Weak ones count: what compresses answers on their way weakens tags, and what people edit is
    named here by what it says, not by bytes.
    """
    tags = [tag.strip() for tag in header.split(",")]
    if tags == ["*"]:
        return None
    return frozenset(tag.removeprefix("W/").strip('"') for tag in tags)


def require_match(request: Request, row: BaseModel, *, required: bool) -> None:
    """Refuse a change made from an older version; else lock the row if ``If-Match`` has tags.

    Raises:
        PreconditionRequiredError: no ``If-Match`` where two people may edit the same text.
        NotFoundError: the row was deleted since it was read.
        StaleVersionError: none of its tags is that of the row now.
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
    """A change by a form, in one transaction: made from what its page showed (``{% seen %}``).

    Raises:
        StaleVersionError: somebody changed the row since; nothing was written.
    """
    with transaction.atomic():
        if seen := request.POST.get("seen"):
            _require_one_of({seen}, row)
        yield


def _require_one_of(tags: Set[str], row: BaseModel) -> None:
    if edit_tag(_held(row)) not in tags:
        raise StaleVersionError("Someone else changed this since you read it. Nothing was written.")


def _held(row: BaseModel) -> BaseModel:
    """``present``, and nobody else can change it until the transaction ends."""
    if row._state.adding:  # no row to lock: a name stands for it until somebody makes it
        transaction_lock(f"edited {type(row).__name__} {_lab_of(row)}")
    now = present(row, is_locked=True)
    if now is row and not row._state.adding:
        raise NotFoundError("This has been deleted in the meantime.")
    return now


def present(row: BaseModel, *, is_locked: bool = False) -> BaseModel:
    """The row as it is now; itself where it is not stored: settings that nobody has made yet."""
    rows: Any = type(row)._base_manager
    rows = rows.select_for_update() if is_locked else rows.all()
    lab_id = _lab_of(row)
    found = rows.filter(lab_id=lab_id) if row._state.adding and lab_id else rows.filter(pk=row.pk)
    return found.first() or row


def _lab_of(row: BaseModel) -> Any:
    return getattr(row, "lab_id", None)
