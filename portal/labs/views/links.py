"""Pages: one-time links. Opening one does not use it up, because mail scanners open links."""

from __future__ import annotations

from allauth.account.utils import perform_login
from allauth.core.ratelimit import consume_or_429
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import not_audited
from portal.core.mail import mail_works
from portal.labs import selectors
from portal.labs.forms.pages import AddressForm, PasswordForm
from portal.labs.models import Purpose, User
from portal.labs.services import sign_in_links as services

SESSION_KEY = "one_time_link"


@not_audited("recorded by its events")
@never_cache
@require_http_methods(["GET", "POST"])
def link_ask(request: HttpRequest) -> HttpResponse:
    """Send a sign-in link; known and unknown addresses get the same answer."""
    form = AddressForm(request.POST or None)
    context = {"form": form, "mail_works": mail_works(), "is_sent": False}
    if request.method == "POST" and form.is_valid():
        refused: HttpResponse | None = consume_or_429(
            request, action="request_login_code", key=form.cleaned_data["email"].lower()
        )
        if refused:
            return refused
        services.sign_in_link_mail(
            form.cleaned_data["email"],
            link_of=lambda secret: request.build_absolute_uri(
                reverse("labs:link_open", args=[secret])
            ),
        )
        context["is_sent"] = True
    return render(request, "labs/link_ask.html", context)


@not_audited("recorded by its events")
@never_cache
@require_GET
def link_open(request: HttpRequest, secret: str) -> HttpResponse:
    """Store the secret of a link in the session and redirect to a URL without it."""
    request.session[SESSION_KEY] = secret
    return redirect("labs:link")


@not_audited("recorded by its events")
@never_cache
@sensitive_post_parameters("password", "repeated")
@require_http_methods(["GET", "POST"])
def link_show(request: HttpRequest) -> HttpResponse:
    """Ask to continue; POST signs in, with a new password if the link is for one."""
    secret = request.session.get(SESSION_KEY, "")
    link = selectors.link_by_secret(secret)
    if link is None or link.user is None or not link.user.is_active:
        return render(request, "labs/link.html", {"link": None}, status=404)
    form = PasswordForm(request.POST or None) if link.purpose == Purpose.PASSWORD else None
    context = {"link": link, "form": form}
    if request.method == "GET":
        return render(request, "labs/link.html", context)
    user = _use_link(secret, Purpose(link.purpose), form)
    if user is None:
        return render(request, "labs/link.html", context, status=400)
    request.session.flush()  # end the session of any other user in this browser
    messages.success(request, f"Signed in as {user}.")
    response: HttpResponse = perform_login(request, user, redirect_url=reverse("home"))
    return response


def _use_link(secret: str, purpose: Purpose, form: PasswordForm | None) -> User | None:
    """Use up the link and return its user; None adds the error to the form."""
    if form is not None and not form.is_valid():
        return None
    try:
        return services.link_use(
            secret, purpose=purpose, password=form.cleaned_data["password"] if form else None
        )
    except InvalidInputError as error:
        if form is not None:
            form.add_error(None, error.message)
        return None
