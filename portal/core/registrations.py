"""Chores of core."""

from __future__ import annotations

from portal.core.api.idempotency import records_sweep
from portal.core.disk import reserve_keep
from portal.core.housekeeping import daily, each_pass

daily("idempotency records")(records_sweep)
each_pass("disk reserve")(reserve_keep)
