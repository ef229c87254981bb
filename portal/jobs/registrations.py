"""Daily chores of jobs."""

from __future__ import annotations

from portal.core.housekeeping import daily
from portal.jobs.services import heartbeats_prune

daily("heartbeats of workers")(heartbeats_prune)
