"""Every address of the portal, read from its URL table, with the ids of a world filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.core.http.audit_rules import AuditRule, audit_rules_of

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

# Values of a path, by the name of its parameter; ids of objects come from the world.
WORDS: Mapping[str, Any] = {
    "address": "0/0/0.jpg",
    "digest": "0" * 32,
    "frame": 1,
    "frames": "1",
    "key": "set-password",
    "kind": "slide",
    "name": "time",
    "provider_id": "lab",
    "pts": 0,
    "extension": "jpg",
    "quality": "default",
    "rank": 1,
    "region": "full",
    "page": "nothing/",
    "rest": "v1/nothing/",
    "rotation": "0",
    "secret": "nothing",
    "size": "!64,64",
    "slug": "north",
    "uidb36": "1",
    "x": 0,
    "y": 0,
    "z": 0,
}
# Which object an id is: by the parameter's name, or by the first word of the endpoint's name.
OBJECTS: Mapping[str, str] = {
    "assignment": "assignments",
    "trash": "entries",
    "canvas": "canvases",
    "case": "cases",
    "delivery": "deliveries",
    "encoder": "encoders",
    "entry": "entries",
    "erasure": "erasures",
    "followup": "followups",
    "import": "roi-imports",
    "instance": "instances",
    "invitation": "invitations",
    "item": "slides",
    "job": "jobs",
    "label": "labels",
    "map": "maps",
    "learning": "learnings",
    "member": "memberships",
    "membership": "memberships",
    "mosaic": "mosaics",
    "notification": "notifications",
    "original": "originals",
    "other": "rois",
    "quarantine": "quarantine",
    "query": "queries",
    "redaction": "redaction_templates",
    "report": "reports",
    "roi": "rois",
    "session": "sessions",
    "share": "shares",
    "slide": "slides",
    "study": "studies",
    "template": "redaction_templates",
    "token": "tokens",
    "upload": "uploads",
    "video": "videos",
    "vocabulary": "vocabulary",
    "webhook": "webhooks",
}
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("mfa_remove_webauthn", "pk"): "passkeys",
    ("api:canvas-frame", "pk"): "video_canvases",
    ("api:service-account-detail", "pk"): "service_accounts",
    ("api:service-account-tokens", "id"): "service_accounts",
    ("api:canvas-filmstrip", "pk"): "video_canvases",
    ("archive:video_open", "item_id"): "videos",
    ("labs:service_account_token", "membership_id"): "service_accounts",
    ("labs:service_account_tokens_revoke", "membership_id"): "service_accounts",
    ("labs:service_account_remove", "membership_id"): "service_accounts",
    ("annotations:roi_purge", "roi_id"): "deleted_rois",
    ("api:review-rules", "id"): "labs",
    ("api:intake-rules", "id"): "labs",
    ("api:quantification-settings", "id"): "labs",
    ("archive:original_delete", "upload_id"): "originals",
    ("archive:quarantine_delete", "upload_id"): "quarantine",
    ("archive:quarantine_redact", "upload_id"): "quarantine",
    ("archive:quarantine_release", "upload_id"): "quarantine",
    ("archive:quarantine_retry", "upload_id"): "quarantine",
    ("api:video-event-detail", "pk"): "video_events",
    ("api:video-event-restore", "pk"): "video_events",
    ("api:video-event-purge", "event_id"): "deleted_video_events",
    ("annotations:video_event_restore", "video_event_id"): "deleted_video_events",
    ("annotations:video_event_purge", "video_event_id"): "deleted_video_events",
    ("api:video-event-revisions", "pk"): "video_events",
    ("api:label-merge", "pk"): "spare_labels",  # nothing has it: one entry, not one a region
    ("api:label-merge-undo", "id"): "label-merges",
    ("api:roi-purge", "roi_id"): "deleted_rois",
    ("annotations:roi_restore", "roi_id"): "deleted_rois",
}


def endpoints(patterns: Any = None, space: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and parameters of each URL pattern; one without a name goes by its function."""
    for entry in patterns if patterns is not None else get_resolver().url_patterns:
        if isinstance(entry, URLResolver):
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from endpoints(entry.url_patterns, inner)
        elif isinstance(entry, URLPattern):
            parameters = set(entry.pattern.regex.groupindex) - set(entry.default_args)
            name = entry.name or f"{entry.callback.__module__}.{entry.callback.__name__}"
            yield f"{space}{name}", tuple(sorted(parameters))


def callbacks(
    entries: Iterable[URLPattern | URLResolver] | None = None, space: str = ""
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each endpoint's name and view."""
    for entry in get_resolver().url_patterns if entries is None else entries:
        if isinstance(entry, URLResolver):
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from callbacks(entry.url_patterns, inner)
        else:
            yield f"{space}{entry.name}", entry.callback


def audit_rules() -> dict[str, dict[str, AuditRule]]:
    """Audit rules by endpoint and method, as the views declare them."""
    endpoints: dict[str, dict[str, AuditRule]] = {}
    for name, view in callbacks():
        rules = {method: rule for method, rule in (audit_rules_of(view) or {}).items() if rule}
        if rules:
            endpoints[name] = rules
    return endpoints


def module_of(view: Callable[..., Any]) -> str:
    """Module of a view's function or class."""
    owner = getattr(view, "cls", None) or getattr(view, "view_class", None) or inspect.unwrap(view)
    return str(owner.__module__)


def by_area(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of endpoints by namespace, those of the API also by the first word: one test each."""
    areas: dict[str, list[str]] = {}
    for name in sorted(names):
        space, _, word = name.rpartition(":")
        area = f"api-{word.partition('-')[0]}" if space == "api" else space or "root"
        areas.setdefault(area, []).append(name)
    return areas


def filled(name: str, parameters: tuple[str, ...], ids: Mapping[str, str]) -> str:
    """The endpoint's path with the world's ids in it.

    Raises:
        LookupError: a parameter that ``WORDS``, ``OBJECTS`` and ``EXCEPTIONS`` do not know.
    """
    return reverse(
        name, kwargs={parameter: _value(name, parameter, ids) for parameter in parameters}
    )


def _value(name: str, parameter: str, ids: Mapping[str, str]) -> Any:
    if exception := EXCEPTIONS.get((name, parameter)):
        return ids[exception]
    if parameter in WORDS:
        return WORDS[parameter]
    word = parameter.removesuffix("_id")
    if word in {"pk", "id"}:
        word = name.rpartition(":")[2].partition("-")[0]
    if word not in OBJECTS:
        raise LookupError(
            f"{name}: what does {parameter!r} stand for? Say so in {inspect.getfile(filled)}."
        )
    return ids[OBJECTS[word]]
