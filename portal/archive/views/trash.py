"""Pages of the trash: restore deleted objects, or delete them permanently."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.archive.extensions import Slot, rendered
from portal.archive.rules import may_purge, require_edit
from portal.archive.selectors.trash import trash_days, trash_get, trash_list, trash_rows
from portal.archive.services.trash import trash_purge as purge_trash
from portal.archive.services.trash import trash_restore as restore_trash
from portal.core.errors import PortalError
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

PER_PAGE = 50  # two screens


@audited(GET=AuditRule("trash.viewed"))
@never_cache
@login_required
@require_GET
def trash(request: HttpRequest) -> HttpResponse:
    """Cases, slides, videos and mosaics in the trash of a lab."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_edit(user, lab.pk)
    page = Paginator(trash_list(user, lab=lab), PER_PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "rows": trash_rows(list(page.object_list))}
    return render(request, "archive/trash.html", context | trash_context(request, lab))


def trash_context(request: HttpRequest, lab: Lab) -> dict[str, object]:
    """Template context of every page of the trash."""
    user = user_of(request)
    return {
        "lab": lab,
        "entry_count": trash_list(user, lab=lab).count(),
        "other_tabs": rendered(Slot.TRASH_TAB, request, lab),
        "may_purge": may_purge(user, lab.pk),
        "can_manage": may_purge(user, lab.pk),  # for the tabs of the lab's pages
        "days": trash_days(),
    }


@audited(POST=rejections("trash.restored"))
@login_required
@require_POST
def trash_restore(request: HttpRequest, entry_id: uuid.UUID) -> HttpResponse:
    """Restore an entry and go to its case; if refused, stay on the page."""
    user = user_of(request)
    entry = trash_get(user, entry_id)
    is_restored = do_and_report(
        request,
        lambda: restore_trash(entry=entry, user=user),
        message=f"{entry.name} is back.",
    )
    if is_restored:
        return redirect("archive:case_detail", case_id=entry.case_id)
    return _to_trash(entry.lab)


@audited(POST=rejections("trash.purged"))
@login_required
@require_POST
def trash_purge(request: HttpRequest, entry_id: uuid.UUID) -> HttpResponse:
    """Delete an entry for good."""
    user = user_of(request)
    entry = trash_get(user, entry_id)
    do_and_report(
        request,
        lambda: purge_trash(entry=entry, user=user),
        message=f"{entry.name} is gone.",
    )
    return _to_trash(entry.lab)


def do_and_report(request: HttpRequest, act: Callable[[], object], *, message: str) -> bool:
    """Call a service and show ``message`` or its error as a message; whether it succeeded.

    Raises:
        ForbiddenError: It has a page of its own.
    """
    try:
        act()
    except PortalError as error:
        if error.status == 403:
            raise
        messages.error(request, error.message)
        return False
    messages.success(request, message)
    return True


def _to_trash(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('archive:trash')}?lab={lab.slug}")
