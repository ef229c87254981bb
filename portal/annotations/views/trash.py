"""Pages of deleted ROIs and events of videos: restore them, or delete them for good."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.rules import require_annotate
from portal.annotations.selectors import trash as selectors
from portal.annotations.services.rois import roi_restore
from portal.annotations.services.trash import ROI_PURGER, VIDEO_EVENT_PURGER
from portal.annotations.services.video_events import video_event_restore
from portal.archive.views.trash import PER_PAGE, do_and_report, trash_context
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get


@dataclass(frozen=True, slots=True)
class DeletedKind:
    """Kind of rows with a page of the trash.

    Attributes:
        name: In the audit log and in the names of addresses.
        title, noun: For people.
        slug: Last part of the page's address.
        page: Name of the page's address.
        detail: Head of the column that only this kind has.
    """

    name: str
    title: str
    noun: str
    slug: str
    page: str
    detail: str
    rows: Callable[..., QuerySet[Any]]
    get: Callable[[User, uuid.UUID], Any]
    restore: Callable[[Any, User], object]
    purge: Callable[[Any, User], object]

    @property
    def parameter(self) -> str:
        """Name of the id in an address."""
        return f"{self.name}_id"

    @property
    def urls(self) -> list[URLPattern]:
        """Addresses of the page and of its buttons."""
        item_path = f"trash/{self.slug}/<uuid:{self.parameter}>"
        restore = _change(self, "saved", self.restore, result="is back.")
        purge = _change(self, "purged", self.purge, result="is gone.")
        return [
            path(f"trash/{self.slug}/", _page(self), name=self.page),
            path(f"{item_path}/restore/", restore, name=f"{self.name}_restore"),
            path(f"{item_path}/purge/", purge, name=f"{self.name}_purge"),
        ]


KINDS = (
    DeletedKind(
        name="roi",
        title="Regions",
        noun="region",
        slug="regions",
        page="trash",
        detail="Label",
        rows=selectors.rois_in_trash,
        get=selectors.roi_in_trash,
        restore=lambda roi, user: roi_restore(roi=roi, user=user),
        purge=lambda roi, user: ROI_PURGER.purge(roi, user=user),
    ),
    DeletedKind(
        name="video_event",
        title="Video events",
        noun="event",
        slug="events",
        page="trash_events",
        detail="Frames",
        rows=selectors.video_events_in_trash,
        get=selectors.video_event_in_trash,
        restore=lambda event, user: video_event_restore(event=event, user=user),
        purge=lambda event, user: VIDEO_EVENT_PURGER.purge(event, user=user),
    ),
)


def trash_tabs(request: HttpRequest, lab: Lab) -> str:
    """Links to the pages of ROIs and events from the pages of the trash, with their numbers."""
    user = user_of(request)
    tabs = [
        {
            "name": kind.title,
            "url": (url := reverse(f"annotations:{kind.page}")),
            "count": kind.rows(user, lab=lab).count(),
            "is_current": request.path == url,
        }
        for kind in KINDS
    ]
    return render_to_string("annotations/_trash_tabs.html", {"lab": lab, "tabs": tabs}, request)


def _page(kind: DeletedKind) -> Callable[..., HttpResponse]:
    @audited(GET=AuditRule("trash.viewed"))
    @never_cache
    @login_required
    @require_GET
    def page(request: HttpRequest) -> HttpResponse:
        """Rows of a lab that were deleted one by one."""
        user = user_of(request)
        lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
        require_annotate(user, lab.pk)
        rows = Paginator(kind.rows(user, lab=lab), PER_PAGE).get_page(request.GET.get("page"))
        context = {
            "page_obj": rows,
            "rows": rows.object_list,
            "shows_annotations": True,
            "kind": kind,
        }
        return render(request, "annotations/trash.html", context | trash_context(request, lab))

    return page


def _change(
    kind: DeletedKind, event: str, act: Callable[[Any, User], object], *, result: str
) -> Callable[..., HttpResponse]:
    @audited(POST=rejections(f"{kind.name}.{event}", kind.name, kind.parameter))
    @login_required
    @require_POST
    def change(request: HttpRequest, **ids: uuid.UUID) -> HttpResponse:
        """Restore a row or delete it for good, and stay on the page."""
        user = user_of(request)
        row = kind.get(user, ids[kind.parameter])
        name = row.name or f"The {kind.noun}"
        do_and_report(request, lambda: act(row, user), message=f"{name} {result}")
        return redirect(f"{reverse(f'annotations:{kind.page}')}?lab={row.lab.slug}")

    return change
