"""Chores of the inbox."""

from __future__ import annotations

from portal.core.housekeeping import daily, each_pass
from portal.inbox.sending import mail_at_once_schedule, mail_daily_schedule
from portal.inbox.services import notifications_prune

each_pass("notifications by mail")(mail_at_once_schedule)
daily("daily notifications by mail")(mail_daily_schedule)
daily("old notifications")(notifications_prune)
