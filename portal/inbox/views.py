"""Pages: the inbox, and the account's notification preferences."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, not_audited
from portal.core.mail import mail_works
from portal.inbox import selectors, services
from portal.inbox.forms import PreferencesForm
from portal.labs.requests import user_of

PER_PAGE = 50  # two screens


@audited(GET=AuditRule("inbox.viewed", every_s=HOUR_S))
@login_required
@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    """The user's notifications, newest first; ``?unread=1``: only unread ones."""
    rows = selectors.notification_list(user_of(request))
    is_unread = request.GET.get("unread") == "1"
    if is_unread:
        rows = rows.unread()
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page_obj": page,
        "entries": [selectors.inbox_entry(row) for row in page],
        "is_unread": is_unread,
    }
    return render(request, "inbox/inbox.html", context)


@not_audited("the read state of one's own notifications")
@login_required
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Mark the given notifications as read; without ids, all."""
    rows = selectors.notification_list(user_of(request))
    chosen = request.POST.getlist("notification")
    if chosen:
        rows = rows.filter(pk__in=[pk for pk in map(_uuid, chosen) if pk])
    count = services.notifications_read(rows)
    if not chosen:
        messages.success(request, f"Notifications marked as read: {count:,}.")
    only_unread = "?unread=1" if request.POST.get("unread") == "1" else ""
    return redirect(reverse("inbox:inbox") + only_unread)


@not_audited("no data of patients")
@login_required
@require_http_methods(["GET", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Show and save when the user receives notifications by mail."""
    user = user_of(request)
    now = selectors.preferences_of(user)
    form = PreferencesForm(request.POST or None, initial={"mail": now.mail})
    if request.method == "POST" and form.is_valid():
        services.preferences_set(user=user, mail=form.cleaned_data["mail"])
        messages.success(request, "Your notification preferences were saved.")
        return redirect("inbox:preferences")
    context = {"form": form, "mail_works": mail_works()}
    status = 400 if form.errors else 200
    return render(request, "inbox/preferences.html", context, status=status)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
