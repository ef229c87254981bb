"""App configuration."""

from __future__ import annotations

import threading

from django.apps import AppConfig


class HooksConfig(AppConfig):
    """Tessera's app that tells other systems what happened: webhooks out of the outbox."""

    name = "portal.hooks"
    label = "hooks"

    def ready(self) -> None:
        """Say what waits in the outbox; deliver beside the reaper, and forget old deliveries."""
        from portal.core.events import outbox_register
        from portal.core.housekeeping import beside, daily
        from portal.hooks.catalogue import waits

        outbox_register(waits)
        beside("webhooks", _deliver)
        daily("deliveries of webhooks", _prune)


def _deliver(stop: threading.Event) -> None:
    from portal.hooks.worker import deliver_forever

    deliver_forever(stop)


def _prune() -> object:
    from portal.hooks.ledger import deliveries_prune

    return deliveries_prune()
