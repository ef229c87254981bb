"""Pages: the audit log of a lab, for its managers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.audit import selectors, services
from portal.audit.actions import ACTIONS
from portal.audit.downloads import FORMATS, export_response
from portal.audit.forms import EntryForm
from portal.audit.models import AuditEntry
from portal.audit.naming import Named, names_of
from portal.audit.rules import require_read
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import AuditRule, audited
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

PER_PAGE = 50  # two screens
_KINDS = {"roi": "region", "canvas": "image"}
"""Kinds of objects that people know by another word."""


@audited(GET=AuditRule("audit.viewed", "lab"))
@never_cache
@login_required
@require_GET
def entry_list(request: HttpRequest) -> HttpResponse:
    """Search the log by actor, action, object and time."""
    lab = _lab(request)
    form = EntryForm(request.GET, lab=lab)
    entries = selectors.entry_list(
        user_of(request), lab=lab, filters=form.filters if form.is_valid() else None
    )
    services.entries_seal()
    page = Paginator(entries, PER_PAGE).get_page(request.GET.get("page"))
    parameters = request.GET.copy()
    parameters.pop("page", None)
    context = {
        "lab": lab,
        "can_manage": True,
        "form": form,
        "page_obj": page,
        "rows": _rows(list(page), user_of(request)),
        "head": selectors.chain_head(lab.pk),
        "parameters": parameters.urlencode(),
        "is_filtered": any(parameters.get(name) for name in form.fields),
    }
    return render(request, "audit/list.html", context, status=400 if form.errors else 200)


@audited(GET=AuditRule("audit.exported", "lab"))
@never_cache
@login_required
@require_GET
def entry_export(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Download all entries that match the page's filter."""
    if kind not in FORMATS:
        raise NotFoundError(f"The log is available as {' or '.join(FORMATS)}.")
    lab = _lab(request)
    form = EntryForm(request.GET, lab=lab)
    if not form.is_valid():
        raise InvalidInputError("The filter of the log is not valid.")
    services.entries_seal_all()
    entries = selectors.entry_list(user_of(request), lab=lab, filters=form.filters)
    return export_response(entries, lab=lab, kind=kind)


def _lab(request: HttpRequest) -> Lab:
    lab = lab_get(user_of(request), slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    set_audited_id(request, lab.pk)
    require_read(user_of(request), lab.pk)
    return lab


@dataclass(frozen=True, slots=True)
class _Row:
    """An entry as text: actor, action, case and object; None if unknown."""

    entry: AuditEntry
    who: str | None
    what: str
    case: Named | None
    about: str


def _rows(entries: list[AuditEntry], user: User) -> list[_Row]:
    members = {e.object_id for e in entries if e.kind == "member" and e.object_id}
    people = selectors.people_names({e.actor_id for e in entries if e.actor_id} | members)
    cases = names_of("case", {entry.case_id for entry in entries if entry.case_id}, user)
    return [
        _Row(
            entry,
            who=people.get(entry.actor_id) if entry.actor_id else None,
            what=ACTIONS.get(entry.action, entry.action),
            case=cases.get(entry.case_id) if entry.case_id else None,
            about=_subject_text(entry, people),
        )
        for entry in entries
    ]


def _subject_text(entry: AuditEntry, people: Mapping[uuid.UUID, str]) -> str:
    if entry.object_id is None or entry.kind in {"case", "lab"}:
        return ""
    kind = _KINDS.get(entry.kind, entry.kind.replace("_", " "))
    return people.get(entry.object_id) or f"{kind} {str(entry.object_id)[:8]}"
