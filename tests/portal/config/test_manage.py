"""``manage.py`` reports an invalid setting in one line."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from django.core import management
from django.core.exceptions import ImproperlyConfigured

SCRIPT = Path(__file__).resolve().parents[3] / "manage.py"


def test_a_wrong_setting_is_one_line_and_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(argv: list[str]) -> None:
        raise ImproperlyConfigured("TESSERA_EMAIL_URL must begin with smtp.")

    monkeypatch.setattr(management, "execute_from_command_line", wrong)
    with pytest.raises(SystemExit, match="TESSERA_EMAIL_URL"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
