"""Record requests in the audit log by the rules of their views, before the response is sent.

A response that cannot be recorded is not sent.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from cachetools import TLRUCache
from django.db import DatabaseError, models
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch

from portal.annotations.models import Label, Roi, VideoEvent
from portal.archive.models import (
    Canvas,
    Case,
    CaseShare,
    RedactionTemplate,
    Slide,
    Upload,
    Video,
)
from portal.audit.models import Outcome
from portal.audit.services import Details, entry_note, keyed_hash, labs_of
from portal.core.errors import UnavailableError
from portal.core.http.acting import acting
from portal.core.http.audit_rules import ITEM, AuditRule, audit_rules_of
from portal.core.views import error_response
from portal.erasure.models import Erasure
from portal.explore.models import RegionMap
from portal.jobs.models import Job
from portal.labs.models import ApiToken, User
from portal.model_training.models import Learning
from portal.mosaics.models import Followup, Mosaic
from portal.reader_studies.models import Assignment, Study
from portal.search.models import Query, Report
from portal.webhooks.models import Webhook

logger = logging.getLogger(__name__)

MAX_RECENT = 20_000
"""Largest number of requests that ``RECENT`` holds: some 5 MB."""

_NOT_FILTERS = {"q", "page", "page_size", "ordering", "part", "v"}
"""Query parameters that do not filter."""

SUBJECTS: Mapping[str, tuple[type[models.Model], str]] = {
    "assignment": (Assignment, ""),
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
    "study": (Study, ""),
    "template": (RedactionTemplate, ""),
    "upload": (Upload, "case_id"),
    "video": (Video, "case_id"),
    "video_event": (VideoEvent, "canvas__case_id"),
    "webhook": (Webhook, ""),
}
"""Model of each kind of object, and the path from it to its case."""


class _RecentRecords:
    """Requests that this process recorded recently, by person, token, action and object."""

    def __init__(self) -> None:
        self._seconds: TLRUCache[tuple[Any, ...], float]
        self._seconds = TLRUCache(MAX_RECENT, ttu=lambda key, seconds, now: now + seconds)
        self._lock = threading.Lock()

    def has(self, key: tuple[Any, ...]) -> bool:
        with self._lock:
            return key in self._seconds

    def add(self, key: tuple[Any, ...], seconds: float) -> None:
        with self._lock:
            self._seconds[key] = seconds

    def clear(self) -> None:
        with self._lock:
            self._seconds.clear()


RECENT = _RecentRecords()


class AuditMiddleware:
    """Pass the request to the audit log, and record it if its view's rule says so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a request, then record it."""
        with acting(request):
            response = self.get_response(request)
            rule = _rule(request)
            if rule is None or not _is_recorded(rule, request, response):
                return response
            try:
                _record(rule, request, response)
            except DatabaseError:
                logger.exception(
                    "audit: %s could not be logged, so it is not answered", request.path
                )
                _close_files(response)
                return error_response(
                    request,
                    UnavailableError(
                        "This could not be recorded in the audit log, so it was not carried out."
                    ),
                )
        return response


def _close_files(response: HttpResponseBase) -> None:
    """Close files of the response; ``close()`` would also signal that the request has ended."""
    for close in getattr(response, "_resource_closers", ()):  # Django has no public name for them
        close()


def _rule(request: HttpRequest) -> AuditRule | None:
    """Rule that the view declares for the request's method."""
    match = request.resolver_match
    rules = audit_rules_of(match.func) if match else None
    method = "GET" if request.method == "HEAD" else str(request.method)
    return rules.get(method) if rules else None


def _is_recorded(rule: AuditRule, request: HttpRequest, response: HttpResponseBase) -> bool:
    if not request.user.is_authenticated:
        return False
    if response.status_code == 403:
        return True
    if rule.only_rejections or response.status_code >= 400:
        return False
    return not rule.only_tokens or isinstance(getattr(request, "auth", None), ApiToken)


def _record(rule: AuditRule, request: HttpRequest, response: HttpResponseBase) -> None:
    user, match = cast(User, request.user), cast(ResolverMatch, request.resolver_match)
    kind = match.kwargs["kind"] if rule.kind == ITEM else rule.kind
    object_id = _object_id(rule, request)
    is_rejected = response.status_code == 403
    token = getattr(request, "auth", None)
    key = (user.pk, getattr(token, "pk", None), rule.action, kind, object_id)
    is_rare = bool(rule.every_s) and not is_rejected
    if is_rare and RECENT.has(key):
        return
    labs, case_id = _place(kind, object_id) if object_id else ([], None)
    details = dict(_details(request))
    own_labs = labs_of(user.pk) if is_rejected or case_id else []
    share = _share(case_id, own_labs) if case_id and not set(own_labs) & set(labs) else None
    if share is not None:  # recorded in both labs
        labs = [share.lab_id, share.with_lab_id]
        details |= {"owner": share.lab.slug, "with": share.with_lab.slug}
    elif is_rejected:  # a token may be rejected before the object's lab is checked
        labs = [lab_id for lab_id in own_labs if lab_id in labs]
    entry_note(
        rule.action,
        lab_ids=labs or labs_of(user.pk),
        kind=kind if object_id else "",
        object_id=object_id,
        case_id=case_id,
        outcome=Outcome.REFUSED if is_rejected else Outcome.DONE,
        details=details,
    )
    if is_rare:
        RECENT.add(key, rule.every_s)


def _object_id(rule: AuditRule, request: HttpRequest) -> uuid.UUID | None:
    if rule.parameter.startswith("?"):
        raw_id: Any = request.GET.get(rule.parameter[1:])
    elif rule.parameter and request.resolver_match:
        raw_id = request.resolver_match.kwargs[rule.parameter]
    else:
        raw_id = getattr(request, "audited_id", None)
    try:
        return uuid.UUID(str(raw_id)) if raw_id else None
    except ValueError:
        return None


def _place(kind: str, object_id: uuid.UUID) -> tuple[list[uuid.UUID], uuid.UUID | None]:
    """Lab and case of an object; empty if it no longer exists."""
    if kind == "lab":
        return [object_id], None
    if kind not in SUBJECTS:
        return [], None
    model, case = SUBJECTS[kind]
    rows = model._default_manager.filter(pk=object_id)
    lab_and_case = rows.values_list("lab_id", case or "pk").first()
    if lab_and_case is None:
        return [], None
    return [lab_and_case[0]], lab_and_case[1] if case else None


def _share(case_id: uuid.UUID, labs: list[uuid.UUID]) -> CaseShare | None:
    """The share that gives people of these labs access to another lab's case."""
    live = CaseShare.objects.live().filter(case=case_id, with_lab__in=labs)
    share: CaseShare | None = live.select_related("lab", "with_lab").order_by("created_at").first()
    return share


def _details(request: HttpRequest) -> Details:
    """Filters of the request; search text as a keyed hash."""
    details: dict[str, str | int | bool] = {}
    if text := request.GET.get("q", "").strip():
        details["q"] = keyed_hash(text)
    used = sorted(name for name, value in request.GET.items() if value and name not in _NOT_FILTERS)
    if used:
        details["filters"] = ",".join(used)[:200]
    return details
