"""The real settings; each role's clock is as wrong as the run says.

The clock is wrong where the portal reads it (``django.utils.timezone.now`` and ``time.time``), by
the role's entry in the file that ``TESSERA_CHAOS_CLOCK`` names.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from portal.config.settings.development import *  # noqa: F403

_CLOCK = Path(os.environ["TESSERA_CHAOS_CLOCK"])
_ROLES = {"manage.py web": "web", "celery": "worker", "reaper": "reaper"}
_ROLE = next((role for word, role in _ROLES.items() if word in " ".join(sys.argv)), "other")
_real_time, _real_now, _read_every_s = time.time, timezone.now, 0.5
_known = {"at": -1e9, "offset_s": 0.0}


def _offset_s() -> float:
    at = time.monotonic()
    if at - _known["at"] > _read_every_s:
        _known["at"] = at
        try:
            _known["offset_s"] = float(json.loads(_CLOCK.read_text()).get(_ROLE, 0))
        except (OSError, ValueError):
            _known["offset_s"] = 0.0
    return _known["offset_s"]


def _wrong_time() -> float:
    return _real_time() + _offset_s()


def _wrong_now() -> datetime:
    return _real_now() + timedelta(seconds=_offset_s())


time.time = _wrong_time
timezone.now = _wrong_now
