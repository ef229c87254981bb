"""What a page says after a deletion."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse

from portal.archive.models import BinEntry


def deleted_notice(request: HttpRequest, entry: BinEntry) -> None:
    """Say that it lies in the bin, with a button that takes it out again."""
    days = settings.TESSERA_BIN_DAYS
    messages.success(
        request,
        f"{entry.name} was deleted. It can be restored for {days:g} days.",
        extra_tags=reverse("keeping:bin_restore", args=[entry.pk]),
    )
