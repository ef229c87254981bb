"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Signed messages to other systems about events."""

    name = "portal.webhooks"
    label = "webhooks"
