"""``manage.py serve``: what it says before it watches its processes."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from portal.config.management.commands import serve

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``said(*arguments)``: the output of a run that is stopped before any process starts."""

    class Stopped:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(serve, "ProcessTree", Stopped)
    monkeypatch.setattr(serve, "free_port", lambda host, wanted: wanted)
    monkeypatch.setattr(serve.connections, "close_all", lambda: None)

    def run(*arguments: str) -> str:
        out = StringIO()
        call_command("serve", *arguments, stdout=out, stderr=out)
        return out.getvalue()

    return run


@pytest.mark.parametrize("more", [[], ["--web-only"]])
def test_the_first_run_is_at_the_address_that_is_served(said: Any, more: list[str]) -> None:
    assert "http://127.0.0.1:8397/set-up/" in said("--port", "8397", *more)


def test_behind_a_proxy_the_first_run_is_at_the_proxys_address(said: Any, settings: Any) -> None:
    settings.TESSERA_URL = "https://tessera.lab.example"
    wanted = "https://tessera.lab.example/set-up/"
    assert wanted in said("--web-only", "--host", "0.0.0.0")
    settings.SECURE_SSL_REDIRECT = True  # the port itself only sends elsewhere
    assert wanted in said("--web-only")


def test_pages_that_cannot_be_shown_are_said_at_once(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "front_end_problem", lambda: "Run: manage.py collectstatic")
    assert "manage.py collectstatic" in said()
