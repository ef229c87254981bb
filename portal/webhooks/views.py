"""Pages: webhooks of a lab and the log of one, for managers."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from ml.types import JsonObject
from portal.core.api.etags import edited_by_page
from portal.core.errors import InvalidInputError, PortalError, StaleVersionError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import require_manager
from portal.labs.selectors import lab_get
from portal.webhooks import selectors, services
from portal.webhooks.catalogue import TYPES
from portal.webhooks.forms import WebhookForm
from portal.webhooks.models import DeliveryState, Webhook

PAGE = 25  # deliveries: a screen or two


@audited(GET=AuditRule("webhook.viewed", "lab", every_s=HOUR_S), POST=rejections("webhook.created"))
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def webhook_list(request: HttpRequest) -> HttpResponse:
    """List the lab's webhooks; POST creates one."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manager(user, lab)
    if request.method == "GET":
        return _list_page(request, lab, WebhookForm())
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _list_page(request, lab, form, status=400)
    try:
        hook, secret = services.webhook_create(lab=lab, user=user, **form.values)
    except PortalError as error:
        form.add_error(None, error.message)
        return _list_page(request, lab, form, status=error.status)
    return _page(request, hook.pk, secret=secret, status=201)


@audited(GET=AuditRule("webhook.viewed", "webhook", "webhook_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def webhook(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Show a webhook and its log."""
    return _page(request, webhook_id)


@audited(
    GET=AuditRule("webhook.viewed", "webhook", "webhook_id", every_s=MINUTE_S),
    POST=rejections("webhook.changed", "webhook", "webhook_id"),
)
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def webhook_edit(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Change name, address and types."""
    hook = _hook(request, webhook_id)
    form = WebhookForm(
        request.POST if request.method == "POST" else None, initial=_form_values(hook)
    )
    if request.method == "POST" and form.is_valid():
        try:
            with edited_by_page(request, hook):
                services.webhook_update(hook=hook, user=user_of(request), **form.values)
        except StaleVersionError:
            hook.refresh_from_db()
            form.show_saved(_form_values(hook))
        else:
            messages.success(request, f"“{hook.name}” was changed.")
            return _redirect_to(hook)
    context = {"lab": hook.lab, "webhook": hook, "form": form}
    status = 400 if form.is_bound else 200
    return render(request, "webhooks/edit.html", context, status=status)


@audited(POST=rejections("webhook.changed", "webhook", "webhook_id"))
@login_required
@require_POST
def webhook_switch(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Switch a webhook on or off."""
    hook = _hook(request, webhook_id)
    services.webhook_update(hook=hook, user=user_of(request), is_on="on" in request.POST)
    messages.success(request, f"“{hook.name}” is {'on' if hook.is_on else 'off'}.")
    return _redirect_to(hook)


@audited(POST=rejections("webhook.secret_changed", "webhook", "webhook_id"))
@never_cache
@login_required
@require_POST
def webhook_secret(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Replace the secret and show it once."""
    hook = _hook(request, webhook_id)
    secret = services.webhook_secret_change(hook=hook, user=user_of(request))
    return _page(request, hook.pk, secret=secret)


@audited(POST=rejections("webhook.pinged", "webhook", "webhook_id"))
@login_required
@require_POST
def webhook_ping(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Send a test message."""
    hook = _hook(request, webhook_id)
    services.webhook_ping(hook=hook, user=user_of(request))
    messages.success(request, "The test message is on its way. Its delivery is shown in the log.")
    return _redirect_to(hook)


@audited(POST=rejections("webhook.replayed", "webhook", "webhook_id"))
@login_required
@require_POST
def webhook_replay(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Send one delivery again, or all that failed."""
    hook, user = _hook(request, webhook_id), user_of(request)
    if posted_id := request.POST.get("delivery"):
        try:
            delivery_id = uuid.UUID(posted_id)
        except ValueError:
            raise InvalidInputError("This is not a delivery.") from None
        delivery = selectors.delivery_get(hook, delivery_id=delivery_id)
        services.delivery_replay(delivery=delivery, user=user)
        count = 1
    else:
        count = services.deliveries_replay(hook=hook, user=user)
    messages.success(request, f"Messages being sent again: {count}.")
    return _redirect_to(hook)


@audited(POST=rejections("webhook.deleted", "webhook", "webhook_id"))
@login_required
@require_POST
def webhook_delete(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Delete a webhook with its log."""
    hook = _hook(request, webhook_id)
    lab, name = hook.lab, hook.name
    services.webhook_delete(hook=hook, user=user_of(request))
    messages.success(request, f"“{name}” was deleted.")
    return redirect(f"{reverse('webhooks:webhooks')}?lab={lab.slug}")


def _form_values(hook: Webhook) -> JsonObject:
    return {"name": hook.name, "url": hook.url, "types": hook.types}


def _hook(request: HttpRequest, webhook_id: uuid.UUID) -> Webhook:
    return selectors.webhook_get(user_of(request), webhook_id=webhook_id)


def _redirect_to(hook: Webhook) -> HttpResponse:
    return redirect("webhooks:webhook", webhook_id=hook.pk)


def _list_page(
    request: HttpRequest, lab: Lab, form: WebhookForm, *, status: int = 200
) -> HttpResponse:
    context = {"lab": lab, "webhooks": selectors.webhooks_of(lab), "form": form}
    return render(request, "webhooks/webhooks.html", context, status=status)


def _page(
    request: HttpRequest, webhook_id: uuid.UUID, *, secret: str = "", status: int = 200
) -> HttpResponse:
    hook = _hook(request, webhook_id)
    state = request.GET.get("state", "")
    state = state if state in DeliveryState.values else ""
    rows = selectors.deliveries_of(hook, state=state or None)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {
        "lab": hook.lab,
        "webhook": hook,
        "titles": [(name, TYPES[name].title) for name in hook.types if name in TYPES],
        "page_obj": page,
        "state": state,
        "states": DeliveryState.choices,
        "secret": secret,
    }
    return render(request, "webhooks/webhook.html", context, status=status)
