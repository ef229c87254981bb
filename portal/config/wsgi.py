"""The WSGI entry point: the tile fast path in front, Django behind."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.production")

django_application = get_wsgi_application()

from portal.archive.tiles.server import TileFastPath  # noqa: E402 - needs the app registry

application = TileFastPath(django_application)
