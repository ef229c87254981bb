"""Handlers of events in core."""

from __future__ import annotations

from portal.core.api.idempotency import effect_mark
from portal.core.events import EVERY, subscribe_batches

subscribe_batches(EVERY)(effect_mark)
