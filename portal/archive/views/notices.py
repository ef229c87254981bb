"""Messages after a deletion."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse

from portal.archive.models import TrashEntry


def deleted_notice(request: HttpRequest, entry: TrashEntry) -> None:
    """Message that the object is in the trash, with a button that restores it."""
    days = settings.TESSERA_TRASH_DAYS
    messages.success(
        request,
        f"{entry.name} was deleted. It can be restored for {days:g} days.",
        extra_tags=reverse("archive:trash_restore", args=[entry.pk]),
    )
