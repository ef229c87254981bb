"""``manage.py``: its options, and the state in which a command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IS_COLLECTING = "import gc, django; django.setup(); print(gc.isenabled(), gc.get_freeze_count())"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "portal.config.settings.development"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_option_for_settings_overrides_the_environment() -> None:
    done = _run("manage.py", "check", "--settings", "portal.config.settings.nowhere")
    assert done.returncode != 0 and "portal.config.settings.nowhere" in done.stderr


def test_garbage_is_collected_once_the_apps_are_loaded() -> None:
    """And what was imported until then is left out of it."""
    done = _run("-c", IS_COLLECTING)
    is_enabled, frozen_count = done.stdout.split()
    assert is_enabled == "True" and int(frozen_count) > 0
