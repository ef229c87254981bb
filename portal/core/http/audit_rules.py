"""Declarations, at each view, of what the audit log records of its requests.

::

    @audited(GET=AuditRule("case.viewed", "case", "case_id"))
    def case_detail(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse: ...


    @audited(list=AuditRule("item.listed"), destroy=rejections("trash.put", "slide", "pk"))
    class SlideViewSet(ApiViewSet[Slide]): ...

A rule's key is an HTTP method, or an action of a viewset. ``operations.audit_middleware`` follows
the rules. Writes are recorded by their events, in their own transactions (``audit.receivers``): of
them only rejections are recorded here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

MINUTE_S, HOUR_S = 60.0, 3600.0
_UNRECORDED = {"head", "options"}  # HEAD has the rule of GET
ITEM = "item"
"""Kind of an object that is a slide or a video, as the path parameter ``kind`` says."""


@dataclass(frozen=True, slots=True)
class AuditRule:
    """Audit rule for a request that was answered or rejected.

    Attributes:
        parameter: Path parameter with the object's id; ``?name``: query parameter. A view may set
            it by ``portal.core.http.acting.about``. Without an object, each lab of the user gets
            it.
        every_s: Record it at most once in this time for one person, token and object.
        only_rejections: The write itself is recorded by its event.
        only_tokens: Record it for tokens only: a session requests it as part of a recorded page.
    """

    action: str
    kind: str = ""
    parameter: str = ""
    every_s: float = 0.0
    only_rejections: bool = False
    only_tokens: bool = False


def rejections(action: str, kind: str = "", parameter: str = "") -> AuditRule:
    """Rule for a write that its event records."""
    return AuditRule(action, kind, parameter, only_rejections=True)


def audited(**rules: AuditRule | None) -> Callable[[View], View]:
    """Declare the rules of a view; None for an action of a viewset that is not recorded."""

    def declare(view: View) -> View:
        view.audit_rules = rules  # type: ignore[attr-defined]
        return view

    return declare


def not_audited(reason: str) -> Callable[[View], View]:
    """Declare that no request of a view is recorded, and why."""
    if not reason:
        raise ValueError("not_audited: expected a reason, got an empty string")
    return audited()


def audit_rules_of(view: Callable[..., Any]) -> Mapping[str, AuditRule | None] | None:
    """Rules of a view of the URL table by HTTP method; None if it declares none.

    Rules that a class inherits are not declared: each view has its own.
    """
    owner = getattr(view, "cls", None) or getattr(view, "view_class", None) or view
    rules: Mapping[str, AuditRule | None] | None = vars(owner).get("audit_rules")
    actions: Mapping[str, str] = getattr(view, "actions", None) or {}
    if not rules or not actions:
        return rules
    recorded = {name: action for name, action in actions.items() if name not in _UNRECORDED}
    if not set(recorded.values()) <= set(rules):
        return None
    return {name.upper(): rules[action] for name, action in recorded.items()}
