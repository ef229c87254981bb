"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class InboxConfig(AppConfig):
    """Notifications of people."""

    name = "portal.inbox"
    label = "inbox"
