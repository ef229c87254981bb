"""Pages of a lab's labels."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal.annotations.forms import LabelForm
from portal.annotations.rules import may_manage_labels
from portal.annotations.selectors import labels as selectors
from portal.annotations.services import labels as services
from portal.core.api.etags import edited_by_page
from portal.core.errors import PortalError, StaleVersionError
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

SHOWN = 10  # of versions and merges; REST lists all versions


@audited(POST=rejections("label.saved"))
@login_required
@require_http_methods(["GET", "POST"])
def labels(request: HttpRequest) -> HttpResponse:
    """The lab's labels with what uses them; POST adds one."""
    lab = lab_get(user_of(request), slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    services.label_set_ensure(lab=lab)
    if request.method == "GET":
        return _page(request, lab, LabelForm(initial={"color": services.color_next(lab=lab)}))
    form = LabelForm(request.POST)
    if not form.is_valid():
        return _page(request, lab, form, status=400)
    try:
        label = services.label_create(
            lab=lab,
            user=user_of(request),
            name=form.cleaned_data["name"],
            color=form.cleaned_data["color"],
        )
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        form.add_error("name", error.message)
        return _page(request, lab, form, status=error.status)
    messages.success(request, f"The label “{label.name}” was added.")
    return _to_labels(lab)


@audited(POST=rejections("label.saved", "label", "label_id"))
@login_required
@require_POST
def label_edit(request: HttpRequest, label_id: uuid.UUID) -> HttpResponse:
    """Rename or recolour a label; ROIs keep it."""
    label = selectors.label_get(user_of(request), label_id)
    form = LabelForm(request.POST)
    if not form.is_valid():
        text = "; ".join(str(error) for errors in form.errors.values() for error in errors)
        messages.error(request, f"“{label.name}” was not changed: {text}")
        return _to_labels(label.lab)
    try:
        with edited_by_page(request, label):
            services.label_update(label=label, user=user_of(request), changes=form.changes())
    except StaleVersionError:
        label.refresh_from_db()
        text = f"Someone else has changed “{label.name}” in the meantime; it is shown as it is now."
        messages.error(request, f"{text} Yours was not saved: “{form.cleaned_data['name']}”.")
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        messages.error(request, error.message)
    else:
        messages.success(request, f"The label “{label.name}” was changed.")
    return _to_labels(label.lab)


@audited(POST=rejections("label.deleted", "label", "label_id"))
@login_required
@require_POST
def label_remove(request: HttpRequest, label_id: uuid.UUID) -> HttpResponse:
    """Delete a label that nothing uses."""
    label = selectors.label_get(user_of(request), label_id)
    try:
        services.label_delete(label=label, user=user_of(request))
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
    else:
        messages.success(request, f"The label “{label.name}” was deleted.")
    return _to_labels(label.lab)


def _page(request: HttpRequest, lab: Lab, form: LabelForm, *, status: int = 200) -> HttpResponse:
    labels = list(selectors.labels_with_use(user_of(request), lab))
    rows = selectors.label_tree(labels)
    clashes = selectors.color_clashes(user_of(request), [row.label for row in rows])
    context = {
        "lab": lab,
        "rows": [(row, clashes.get(row.label.pk)) for row in rows],
        "retired": [label for label in labels if label.retired_at is not None],
        "merges": selectors.merges_of(lab)[:SHOWN],
        "versions": selectors.label_versions(user_of(request), lab_id=lab.pk)[:SHOWN],
        "keys": services.KEYS,
        "form": form,
        "can_manage": may_manage_labels(user_of(request), lab.pk),
    }
    return render(request, "annotations/labels.html", context, status=status)


def _to_labels(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('annotations:labels')}?lab={lab.slug}")
