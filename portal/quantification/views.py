"""Page of a lab's thresholds."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_get
from portal.quantification.forms import ThresholdsForm
from portal.quantification.selectors import (
    THRESHOLDS,
    settings_of,
)
from portal.quantification.services import quantification_settings_set


@audited(POST=rejections("quantification_settings.changed"))
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: HttpRequest) -> HttpResponse:
    """Show the thresholds of a lab; its managers change them."""
    user = user_of(request)
    slug = request.POST.get("lab") or request.GET.get("lab")
    lab = lab_get(user, slug=slug, chosen=lab_chosen_by(request))
    row = settings_of(lab.pk)
    initial = {name: getattr(row, name) for name in THRESHOLDS}
    form = ThresholdsForm(request.POST or None, initial=initial)
    if request.method == "POST":
        may = has_role(user, lab.pk, at_least=Role.MANAGER)
        if not may or form.is_valid():
            try:
                values = form.cleaned_data if may else {}
                quantification_settings_set(lab=lab, user=user, **values)
            except InvalidInputError as error:
                form.add_error(None, error.message)
            else:
                messages.success(request, f"The thresholds of {lab.name} were saved.")
                return redirect(f"{reverse('quantification:settings')}?lab={lab.slug}")
    context = {
        "lab": lab,
        "thresholds": row,
        "form": form,
        "can_manage": has_role(user, lab.pk, at_least=Role.MANAGER),
    }
    return render(request, "quantification/settings.html", context)
