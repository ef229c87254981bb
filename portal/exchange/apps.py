"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ExchangeConfig(AppConfig):
    """Tessera's app that speaks the standards of other systems."""

    name = "portal.exchange"
    label = "exchange"
