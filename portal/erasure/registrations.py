"""Registrations of erasure with Django's checks and with backups."""

from __future__ import annotations

from django.core.checks import register

from portal.backups.services.erasures import ERASURE_LISTS, ERASURE_REPEATERS
from portal.erasure.selectors.erasures import erasures_completed
from portal.erasure.services.erasures import erasure_repeat
from portal.erasure.services.tables import every_table_has_a_rule

ERASURE_LISTS.register("erasure")(erasures_completed)
ERASURE_REPEATERS.register("erasure")(erasure_repeat)
register(every_table_has_a_rule)
