"""Pages: the vocabulary of a lab."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal.archive.models import VocabularyField
from portal.archive.receiving import FORM_OVERHEAD_BYTES, files_receive
from portal.archive.rules import require_manage_vocabulary
from portal.archive.selectors.vocabulary import vocabulary_list
from portal.archive.services.vocabulary import (
    EXAMPLE,
    MAX_FILE_BYTES,
    MAX_TERMS,
    vocabulary_delete,
    vocabulary_import,
)
from portal.core.errors import ForbiddenError, InvalidInputError, PortalError
from portal.core.http.audit_rules import audited, rejections
from portal.core.http.bodies import receives_files, require_acceptable, require_csrf
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get, memberships_of

PER_PAGE = 100  # rows of 40 px: four screens


@audited(GET=None, POST=rejections("vocabulary.imported"))
@receives_files
@login_required
@require_http_methods(["GET", "POST"])
def vocabulary(request: HttpRequest) -> HttpResponse:
    """The terms of a lab; POST counts what a file would change, and imports it. For managers."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manage_vocabulary(user, lab.pk)
    if request.method == "GET":
        return _page(request, lab)
    try:
        data, is_preview = _posted_file(request)
        result = vocabulary_import(lab=lab, user=user, data=data, is_preview=is_preview)
    except ForbiddenError:
        raise  # sent from another site
    except PortalError as error:
        return _page(request, lab, problem=error.message, status=error.status)
    if is_preview:
        return _page(request, lab, preview=result, text=data.decode("utf-8-sig"))
    messages.success(
        request,
        f"Imported: {result.added:,} new, {result.changed:,} changed, "
        f"{result.unchanged:,} unchanged.",
    )
    return _to_vocabulary(lab)


@audited(POST=rejections("vocabulary.deleted"))
@login_required
@require_POST
def vocabulary_remove(request: HttpRequest) -> HttpResponse:
    """Delete the chosen terms, or all of a field."""
    user, data = user_of(request), request.POST
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    field = data.get("field", "")
    if field:
        count = vocabulary_delete(lab=lab, user=user, field=field)
    else:
        count = vocabulary_delete(lab=lab, user=user, ids=_ids(data))
    if count:
        messages.success(
            request, f"{count:,} term{'' if count == 1 else 's'} deleted. Cases keep their words."
        )
    else:
        messages.info(request, "Choose terms to delete.")
    return _to_vocabulary(lab)


def _page(request: HttpRequest, lab: Lab, *, status: int = 200, **context: object) -> HttpResponse:
    user = user_of(request)
    field, text = request.GET.get("field", ""), request.GET.get("q", "").strip()
    terms = vocabulary_list(user=user, lab_id=lab.pk)
    matching = vocabulary_list(user=user, lab_id=lab.pk, field=field, text=text)
    page = Paginator(matching, PER_PAGE).get_page(request.GET.get("page"))
    counts = {value: terms.filter(field=value).count() for value in VocabularyField.values}
    context |= {
        "lab": lab,
        "memberships": memberships_of(user),
        "can_manage": True,
        "page_obj": page,
        "counts": [(value, label, counts[value]) for value, label in VocabularyField.choices],
        "total": sum(counts.values()),
        "field": field,
        "term_text": text,
        "example": EXAMPLE,
        "max_terms": MAX_TERMS,
        "max_kib": MAX_FILE_BYTES // 2**10,
    }
    return render(request, "archive/vocabulary.html", context, status=status)


def _posted_file(request: HttpRequest) -> tuple[bytes, bool]:
    """Bytes of the file, and whether they are only counted: the preview sends them as a text.

    Raises:
        InvalidInputError: No file was chosen.
    """
    require_acceptable(request, limit_bytes=MAX_FILE_BYTES + FORM_OVERHEAD_BYTES)

    def admit(fields: QueryDict) -> None:
        require_csrf(request, fields)

    fields, files = files_receive(request, admit=admit)
    if file := files.get("file"):
        return file.read(MAX_FILE_BYTES + 1), True
    if text := fields.get("text"):
        return text.encode(), False
    raise InvalidInputError("Choose a file first.")


def _ids(data: QueryDict) -> list[uuid.UUID]:
    try:
        return [uuid.UUID(text) for text in data.getlist("term")]
    except ValueError as error:
        raise InvalidInputError("term: not an id of a term.") from error


def _to_vocabulary(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('archive:vocabulary')}?lab={lab.slug}")
