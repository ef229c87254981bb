"""Registered housekeeping of accounts."""

from __future__ import annotations

from portal.core.housekeeping import daily
from portal.labs.services.attempts import attempts_sweep
from portal.labs.services.sessions import sessions_sweep

daily("attempts to sign in")(attempts_sweep)
daily("sessions")(sessions_sweep)
