"""Receivers of Django's signals: log sign-ins and sign-outs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from portal.audit.services import entry_note, keyed_hash, labs_of
from portal.labs.models import User


@receiver(user_logged_in, dispatch_uid="audit.signed_in")
def log_sign_in(request: HttpRequest | None, user: User, **_: Any) -> None:
    """Log a sign-in in all labs of the account."""
    entry_note("account.signed_in", lab_ids=labs_of(user.pk), actor_id=user.pk)


@receiver(user_logged_out, dispatch_uid="audit.signed_out")
def log_sign_out(request: HttpRequest | None, user: User | None, **_: Any) -> None:
    """Log a sign-out in all labs of the account."""
    if user is not None:
        entry_note("account.signed_out", lab_ids=labs_of(user.pk), actor_id=user.pk)


@receiver(user_login_failed, dispatch_uid="audit.sign_in_failed")
def log_failed_sign_in(credentials: Mapping[str, Any], **_: Any) -> None:
    """Log a failed sign-in in all labs of the account; of an unknown address only a hash."""
    address = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    user = User.objects.filter(email=address).first() if address else None
    entry_note(
        "account.sign_in_failed",
        lab_ids=labs_of(user.pk) if user else [],
        kind="member" if user else "",
        object_id=user.pk if user else None,
        details={} if user else {"address": keyed_hash(address)},
    )
