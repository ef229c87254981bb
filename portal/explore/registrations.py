"""Registrations of explore with lower apps."""

from __future__ import annotations

from portal.core.housekeeping import daily
from portal.explore.services.similar_regions import samples_sweep

daily("tissue samples")(samples_sweep)
