"""The ASGI entry point; ``manage.py web`` serves it."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.production")

django.setup()

from portal.core import environment  # noqa: E402 - needs the app registry
from portal.core.observe.traces import traces_start  # noqa: E402
from portal.operations.web.application import WebApplication  # noqa: E402

traces_start("tessera-web")
application = WebApplication(
    threads=int(environment.number("TESSERA_WEB_THREADS", default=4, minimum=1)),
    access_log=environment.flag("TESSERA_ACCESS_LOG", default=False),
)
