"""Registrations of webhooks with lower apps: the outbox and housekeeping."""

from __future__ import annotations

from portal.core.events import OUTBOX
from portal.core.housekeeping import daily, each_pass
from portal.webhooks.catalogue import waits
from portal.webhooks.sending import deliveries_prune, deliveries_schedule

OUTBOX.register("webhooks")(waits)
each_pass("webhooks")(deliveries_schedule)
daily("deliveries of webhooks")(deliveries_prune)
