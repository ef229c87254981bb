"""Tests: fast password hashing, throw-away storage, jobs run when the test says so."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .base import *  # noqa: F403

DEBUG = False
SECRET_KEY = "test-only-" + "0123456789abcdef" * 4
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
TESSERA_STORAGE = Path(tempfile.gettempdir()) / "tessera-test-storage"  # the fixture moves it
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS = {}
# A job runs within a test's transaction, and a heartbeat has a connection of its own: it would not
# see the job, and take it for lost, or find SQLite's tables locked.
TESSERA_JOB_LEASE_S = 3600
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
WHITENOISE_ROOT = None  # a test that needs the guide names its folder
# It keeps no more than the cache of production does.
CACHES = {"default": {"BACKEND": "portal.core.caches.JsonMemoryCache"}}
