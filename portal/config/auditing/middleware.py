"""Notes in the audit log what people read, before the answer goes out.

Where the note cannot be made, the answer does not go out.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from django.db import DatabaseError, models
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch

from portal.annotations.models import Label, Roi
from portal.archive.models import Canvas, Case, CaseShare, Slide, Upload, Video
from portal.audit.models import Outcome
from portal.audit.services import Details, entry_note, keyed_hash, labs_of
from portal.config.auditing.watch import ITEM, Watch
from portal.config.auditing.watched import WATCHED
from portal.core.errors import UnavailableError
from portal.core.http.acting import acting
from portal.core.views import error_response
from portal.hooks.models import Webhook
from portal.jobs.models import Job
from portal.keeping.models import Erasure
from portal.labs.models import ApiToken, User
from portal.mosaics.models import Followup, Mosaic
from portal.retrieval.models import Learning, Query, RegionMap, Report

logger = logging.getLogger(__name__)

REMEMBERED = 20_000
"""How many noted readings a process remembers: some 5 MB."""

_QUIET = {"q", "page", "page_size", "ordering", "part", "v"}
"""Query parameters that are not filters."""

# Where an object's lab and case are found.
_SUBJECTS: Mapping[str, tuple[type[models.Model], str]] = {
    "canvas": (Canvas, "case_id"),
    "case": (Case, "id"),
    "erasure": (Erasure, ""),
    "followup": (Followup, "roi__canvas__case_id"),
    "job": (Job, ""),
    "label": (Label, ""),
    "learning": (Learning, ""),
    "mosaic": (Mosaic, "case_id"),
    "map": (RegionMap, ""),
    "query": (Query, "canvas__case_id"),
    "report": (Report, "canvas__case_id"),
    "roi": (Roi, "canvas__case_id"),
    "share": (CaseShare, "case_id"),
    "slide": (Slide, "case_id"),
    "upload": (Upload, "case_id"),
    "video": (Video, "case_id"),
    "webhook": (Webhook, ""),
}


class _Noted:
    """Readings of this process that were noted already, by person, token, action and object."""

    def __init__(self) -> None:
        self._until: dict[tuple[Any, ...], float] = {}
        self._lock = threading.Lock()

    def holds(self, key: tuple[Any, ...]) -> bool:
        return self._until.get(key, 0.0) > time.monotonic()

    def add(self, key: tuple[Any, ...], seconds: float) -> None:
        with self._lock:
            if len(self._until) >= REMEMBERED:
                self._until.clear()
            self._until[key] = time.monotonic() + seconds

    def clear(self) -> None:
        self._until.clear()


NOTED = _Noted()


class AuditMiddleware:
    """Makes the request known to the log, and notes what the table says before the answer goes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, then note."""
        with acting(request):
            response = self.get_response(request)
            watch = _watch(request)
            if watch is None or not _is_noted(watch, request, response):
                return response
            try:
                _note(watch, request, response)
            except DatabaseError:
                logger.exception(
                    "audit: %s could not be logged, so it is not answered", request.path
                )
                _let_go(response)
                return error_response(
                    request,
                    UnavailableError(
                        "This could not be recorded in the audit log, so it was not carried out."
                    ),
                )
        return response


def _let_go(response: HttpResponseBase) -> None:
    """Close its files; ``close()`` would also signal that the request has ended."""
    for close in getattr(response, "_resource_closers", ()):  # Django has no public name for them
        close()


def _watch(request: HttpRequest) -> Watch | None:
    match = request.resolver_match
    method = "GET" if request.method == "HEAD" else str(request.method)
    return WATCHED.get(match.view_name, {}).get(method) if match else None


def _is_noted(watch: Watch, request: HttpRequest, response: HttpResponseBase) -> bool:
    if not request.user.is_authenticated:
        return False
    if response.status_code == 403:
        return True
    if watch.is_told or response.status_code >= 400:
        return False
    return not watch.only_tokens or isinstance(getattr(request, "auth", None), ApiToken)


def _note(watch: Watch, request: HttpRequest, response: HttpResponseBase) -> None:
    user, match = cast(User, request.user), cast(ResolverMatch, request.resolver_match)
    kind = match.kwargs["kind"] if watch.kind == ITEM else watch.kind
    object_id = _object_id(watch, request)
    refused = response.status_code == 403
    token = getattr(request, "auth", None)
    key = (user.pk, getattr(token, "pk", None), watch.action, kind, object_id)
    is_seldom = bool(watch.every_s) and not refused
    if is_seldom and NOTED.holds(key):
        return
    labs, case_id = _place(kind, object_id) if object_id else ([], None)
    details = dict(_details(request))
    mine = labs_of(user.pk) if refused or case_id else []
    share = _share(case_id, mine) if case_id and not set(mine) & set(labs) else None
    if share is not None:  # both labs can tell who of which lab did it
        labs = [share.lab_id, share.with_lab_id]
        details |= {"owner": share.lab.slug, "with": share.with_lab.slug}
    elif refused:  # a token may be refused before the object's lab is checked
        labs = [lab_id for lab_id in mine if lab_id in labs]
    entry_note(
        watch.action,
        lab_ids=labs or labs_of(user.pk),
        kind=kind if object_id else "",
        object_id=object_id,
        case_id=case_id,
        outcome=Outcome.REFUSED if refused else Outcome.DONE,
        details=details,
    )
    if is_seldom:
        NOTED.add(key, watch.every_s)


def _object_id(watch: Watch, request: HttpRequest) -> uuid.UUID | None:
    if watch.parameter.startswith("?"):
        found: Any = request.GET.get(watch.parameter[1:])
    elif watch.parameter and request.resolver_match:
        found = request.resolver_match.kwargs[watch.parameter]
    else:
        found = getattr(request, "audited_id", None)
    try:
        return uuid.UUID(str(found)) if found else None
    except ValueError:
        return None


def _place(kind: str, object_id: uuid.UUID) -> tuple[list[uuid.UUID], uuid.UUID | None]:
    """The lab and the case of an object; nothing where it is gone."""
    if kind == "lab":
        return [object_id], None
    if kind not in _SUBJECTS:
        return [], None
    model, case = _SUBJECTS[kind]
    rows = model._default_manager.filter(pk=object_id)
    found = rows.values_list("lab_id", case or "pk").first()
    if found is None:
        return [], None
    return [found[0]], found[1] if case else None


def _share(case_id: uuid.UUID, labs: list[uuid.UUID]) -> CaseShare | None:
    """The share that gives people of these labs access to another lab's case."""
    live = CaseShare.objects.live().filter(case=case_id, with_lab__in=labs)
    share: CaseShare | None = live.select_related("lab", "with_lab").order_by("created_at").first()
    return share


def _details(request: HttpRequest) -> Details:
    """Which filters were used; a text that was searched for, as a keyed hash."""
    details: dict[str, str | int | bool] = {}
    if text := request.GET.get("q", "").strip():
        details["q"] = keyed_hash(text)
    used = sorted(name for name, value in request.GET.items() if value and name not in _QUIET)
    if used:
        details["filters"] = ",".join(used)[:200]
    return details
