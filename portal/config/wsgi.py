"""The WSGI entry point: the tile fast path in front, Django behind."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.production")
# Requests run beside each other already: threads within one that solves 200 equations only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

django_application = get_wsgi_application()

from portal.archive.tiles.server import TileFastPath  # noqa: E402 - needs the app registry
from portal.config.peer import BehindFront  # noqa: E402
from portal.core.observe.traces import traces_start  # noqa: E402

traces_start("tessera-web")
application = BehindFront(TileFastPath(django_application))
