"""Receivers of allauth's signals, connected when the app is ready."""

from __future__ import annotations

from typing import Any

from allauth.account.signals import password_changed, password_reset, password_set
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from portal.core.events import event_emit
from portal.labs.models import User
from portal.labs.services.factors import app_code_spend
from portal.labs.services.proof import email_prove
from portal.labs.services.sessions import session_begin, session_note


@receiver(password_reset)
def handle_password_reset(user: User, **kwargs: Any) -> None:
    """Record that the address is proven: a reset link is only sent to it."""
    email_prove(user, has_new_password=True)


@receiver(user_logged_in)
def handle_login(request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Record a session, by whichever way the user signed in."""
    session_begin(request, user)


@receiver([password_changed, password_set])
def handle_password_change(request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Record the new session key that a password change creates."""
    session_note(request, user)


@receiver([authenticator_added, authenticator_reset])
def handle_factor_added(user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    """Record a new second factor or new recovery codes."""
    _emit("account.factor_added", user, authenticator)


@receiver(authenticator_added)
def use_up_first_code(request: HttpRequest, authenticator: Authenticator, **kwargs: Any) -> None:
    """Use up the code that added an app, so that it cannot sign in."""
    if authenticator.type == Authenticator.Type.TOTP:
        app_code_spend(authenticator, request.POST.get("code", ""))


@receiver(authenticator_removed)
def handle_factor_removed(user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    """Record a removed second factor."""
    _emit("account.factor_removed", user, authenticator)


@receiver(authentication_failed)
def handle_factor_failed(user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    """Record a wrong second factor after a right password."""
    _emit("account.factor_failed", user, authenticator)


def _emit(name: str, user: User, authenticator: Authenticator) -> None:
    event_emit(name, lab_id=None, payload={"user": str(user.pk), "kind": authenticator.type})
