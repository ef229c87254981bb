"""An export as an answer, by byte ranges: a download that broke off can be resumed."""

from __future__ import annotations

import uuid

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from portal.core.errors import NotFoundError
from portal.core.http.downloads import attachment
from portal.core.http.files import range_response
from portal.exchange import selectors
from portal.labs.models import User


def export_response(request: HttpRequest, *, user: User, case_id: uuid.UUID) -> HttpResponseBase:
    """The person's newest export of a case, or ``NotFoundError``."""
    case = selectors.case_to_export(user=user, case_id=case_id)
    path = selectors.export_path(case.pk, user)
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise NotFoundError("There is no export of this case. Order one first.") from error
    etag = f'"x-{found.st_mtime_ns:x}-{found.st_size:x}"'
    response = range_response(request, path, etag=etag, media_type="application/zip")
    name = attachment(f"case {case.accession}", ".zip", fallback="case")
    response["Content-Disposition"] = name
    return response
