"""ETag and If-Match of what people edit: a change is made from what its sender saw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from portal.core.api.problems import ProblemSerializer
from portal.core.errors import PreconditionRequiredError, StaleVersionError
from portal.core.models import BaseModel, edit_tag

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag that the change was made from, or `*` for whatever is there. 428 without"
    " it, 412 if stale.",
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
STALE = OpenApiResponse(
    ProblemSerializer,
    "Stale: the body also has `current_version`, the ETag, and `current`, the object as it is.",
)


def etag_of(row: BaseModel, body: Any) -> str:
    """The tag of an answer that shows a row.

    What stands before the stop names what people edit, and is all that ``If-Match`` goes by: a
    count in the answer that went up must not refuse a change. What follows names the whole answer.
    """
    text = json.dumps(body, sort_keys=True, default=str)
    return f'"{edit_tag(row)}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"'


def require_match(request: Request, row: BaseModel, *, required: bool) -> None:
    """Hold the row as it is until the transaction ends, and refuse a change of what was before.

    Raises:
        PreconditionRequiredError: no ``If-Match`` where two people may edit the same text.
        StaleVersionError: none of its tags is that of the row now.
    """
    header = request.headers.get("If-Match")
    if header is None and required:
        raise PreconditionRequiredError(
            "Send the ETag that you read as If-Match, or If-Match: * for whatever is there."
        )
    if header is not None and header.strip() != "*":
        tags = {tag.strip().strip('"').partition(".")[0] for tag in header.split(",")}
        _require_one_of(tags, row)


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
    if edit_tag(present(row, is_locked=True)) not in tags:
        raise StaleVersionError("Someone else changed this since you read it. Nothing was written.")


def present(row: BaseModel, *, is_locked: bool = False) -> BaseModel:
    """The row as it is now; itself where it is not stored: settings that nobody made yet."""
    rows: Any = type(row)._base_manager
    rows = rows.select_for_update() if is_locked else rows.all()
    lab_id = getattr(row, "lab_id", None)
    found = rows.filter(lab_id=lab_id) if row._state.adding and lab_id else rows.filter(pk=row.pk)
    return found.first() or row
