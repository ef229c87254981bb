"""Pages of the properties that a lab keeps of its ROIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal.annotations.forms import PropertyTypeForm
from portal.annotations.properties import PropertyType, types_etag
from portal.annotations.rules import may_manage_labels, require_manage_labels
from portal.annotations.selectors import labels as selectors
from portal.annotations.services import properties as services
from portal.core.errors import InvalidInputError, PortalError
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

_MOVES = {"up": -1, "down": 1}


@dataclass(frozen=True, slots=True)
class _Row:
    """A property and the form that changes it; open where it was sent and is wrong."""

    type: PropertyType
    form: PropertyTypeForm
    is_open: bool = False


@audited(POST=rejections("properties.changed"))
@login_required
@require_http_methods(["GET", "POST"])
def properties(request: HttpRequest) -> HttpResponse:
    """The properties that the lab keeps, in their order; POST adds one."""
    lab = _lab(request)
    if request.method == "GET":
        return _page(request, lab, PropertyTypeForm())
    require_manage_labels(user_of(request), lab.pk)
    form = PropertyTypeForm(request.POST)
    etag, user = request.POST.get("etag", ""), user_of(request)

    def add() -> object:
        return services.property_type_add(lab=lab, user=user, etag=etag, data=form.property_data())

    if not form.is_valid() or not _is_done(form, add):
        return _page(request, lab, form, status=400)
    messages.success(request, f"The property “{form.property_data().name}” was added.")
    return _to_properties(lab)


@audited(POST=rejections("properties.changed"))
@login_required
@require_POST
def property_edit(request: HttpRequest) -> HttpResponse:
    """Change one: ``do`` is ``save``, ``up``, ``down``, ``retire`` or ``return``."""
    lab, user = _lab(request), user_of(request)
    do, key = request.POST.get("do", ""), request.POST.get("key", "")
    etag = request.POST.get("etag", "")
    require_manage_labels(user, lab.pk)
    if do == "save":
        return _save(request, lab, key, etag)
    try:
        if do not in {*_MOVES, "retire", "return"}:
            raise InvalidInputError("do: save, up, down, retire or return.")
        if by := _MOVES.get(do):
            services.property_type_move(lab=lab, user=user, etag=etag, key=key, by=by)
        else:
            services.property_type_retire(
                lab=lab, user=user, etag=etag, key=key, is_retired=do != "return"
            )
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        messages.error(request, error.message)
        return _to_properties(lab)
    return _to_properties(lab, moved=f"{do}:{key}" if do in _MOVES else "")


def _save(request: HttpRequest, lab: Lab, key: str, etag: str) -> HttpResponse:
    form = PropertyTypeForm(request.POST, auto_id=_ids(key))

    def change() -> object:
        return services.property_type_update(
            lab=lab, user=user_of(request), etag=etag, key=key, data=form.property_data()
        )

    if not form.is_valid() or not _is_done(form, change):
        return _page(request, lab, PropertyTypeForm(), wrong=(key, form), status=400)
    messages.success(request, f"The property “{form.property_data().name}” was changed.")
    return _to_properties(lab)


def _is_done(form: PropertyTypeForm, run: Callable[[], object]) -> bool:
    """Run a change and show its errors on the form; whether it succeeded."""
    try:
        run()
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        text = error.message.removeprefix("properties: ")
        form.add_error(None, text[:1].upper() + text[1:])
        return False
    return True


def _page(
    request: HttpRequest,
    lab: Lab,
    form: PropertyTypeForm,
    *,
    wrong: tuple[str, PropertyTypeForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    types = selectors.property_types_of(lab.pk)
    rows = [
        _Row(property_type, wrong[1], is_open=True)
        if wrong and wrong[0] == property_type.key
        else _Row(
            property_type, PropertyTypeForm.of(property_type, auto_id=_ids(property_type.key))
        )
        for property_type in types
        if not property_type.retired
    ]
    context = {
        "lab": lab,
        "rows": rows,
        "retired": [property_type for property_type in types if property_type.retired],
        "etag": types_etag(types),
        "form": form,
        "moved": request.GET.get("moved", ""),
        "can_manage": may_manage_labels(user_of(request), lab.pk),
    }
    return render(request, "annotations/properties.html", context, status=status)


def _ids(key: str) -> str:
    """Format of the HTML ids of one property's form; a page has several such forms."""
    return f"id_{key.encode().hex()}_%s"


def _lab(request: HttpRequest) -> Lab:
    return lab_get(user_of(request), slug=request.GET.get("lab"), chosen=lab_chosen_by(request))


def _to_properties(lab: Lab, *, moved: str = "") -> HttpResponse:
    query = {"lab": lab.slug} | ({"moved": moved} if moved else {})
    return redirect(reverse("annotations:properties", query=query))
