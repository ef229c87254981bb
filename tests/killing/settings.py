"""The real settings, plus the job kinds of this folder; database and broker by environment."""

from __future__ import annotations

from portal.config.settings.development import *  # noqa: F403
from portal.config.settings.development import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.killing"]
