"""``manage.py serve``: what it says before it watches its processes."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from portal.operations.management.commands import serve

pytestmark = pytest.mark.django_db


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that runs the command without starting processes, and returns its output."""

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
def test_the_first_run_link_has_the_served_address(output: Any, more: list[str]) -> None:
    assert "http://127.0.0.1:8397/set-up/" in output("--port", "8397", *more)


def test_behind_a_proxy_the_first_run_link_has_the_proxys_address(
    output: Any, settings: Any
) -> None:
    settings.TESSERA_URL = "https://tessera.lab.example"
    wanted = "https://tessera.lab.example/set-up/"
    assert wanted in output("--web-only", "--host", "0.0.0.0")
    settings.SECURE_SSL_REDIRECT = True  # the port itself only sends elsewhere
    assert wanted in output("--web-only")


def test_missing_styles_are_reported_at_start(output: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "front_end_problem", lambda: "Run: manage.py collectstatic")
    assert "manage.py collectstatic" in output()


def test_the_address_is_named_once_a_process_listens(
    output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, True]
    said: list[str] = []

    class Tree:
        def __init__(self, *_: object, say: Any, **__: object) -> None: ...

        def __enter__(self) -> Tree:
            return self

        def __exit__(self, *_: object) -> None: ...

        def wait_until(self, condition: Any) -> None:
            while not condition():
                said.append("waits")

        def wait(self) -> int:
            raise KeyboardInterrupt

    monkeypatch.setattr(serve, "ProcessTree", Tree)
    monkeypatch.setattr(serve, "is_listening", lambda host, port: answers.pop(0))
    assert "Tessera is at http://127.0.0.1:8397" in output("--port", "8397")
    assert said == ["waits"]
