"""A laptop: a key that protects nothing, SQLite and the embedded broker."""

from __future__ import annotations

from portal.core import environment

from .base import *  # noqa: F403

DEBUG = environment.flag("TESSERA_DEBUG", default=False)  # pages for developers only: `make dev`
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_USE_FINDERS = True
SECRET_KEY = "development-only-" + "0123456789abcdef" * 4
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
vars().update(environment.mail("consolemail://"))  # for developers; counts as no mail
