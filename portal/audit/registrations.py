"""Registered housekeeping of the audit log."""

from __future__ import annotations

from portal.audit.services import entries_seal, entries_seal_all
from portal.core.housekeeping import daily, each_pass

each_pass("audit seals")(entries_seal)
daily("audit seals")(entries_seal_all)
