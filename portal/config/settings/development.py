"""A laptop: debug pages, a key that protects nothing, SQLite and the embedded broker."""

from __future__ import annotations

from portal.config import environment

from .base import *  # noqa: F403

DEBUG = environment.flag("TESSERA_DEBUG", default=True)
SECRET_KEY = "development-only-" + "0123456789abcdef" * 4
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
