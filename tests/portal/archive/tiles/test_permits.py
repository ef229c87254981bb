"""Permissions of tiles that are requested at once."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from portal.archive.tiles import permits as module
from portal.archive.tiles.permits import Credential, Permit, Permits


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "connection_refresh", lambda: None)


ALICE, BOB = Credential("sessionid=a", ""), Credential("sessionid=b", "")


def test_requests_of_one_person_at_once_share_a_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Credential] = []
    started, finish = threading.Event(), threading.Event()
    waiting = threading.Semaphore(0)

    def look_up(canvas: str, credential: Credential) -> Permit:
        looked_up.append(credential)
        if credential == ALICE:
            started.set()
            assert finish.wait(30)
        return Permit(None, status=404, text=credential.cookie)

    class Watched(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waiting.release()
            return super().result(timeout)

    monkeypatch.setattr(module, "_look_up", look_up)
    monkeypatch.setattr(module, "Future", Watched)
    permits = Permits()
    with ThreadPoolExecutor(4) as pool:
        shared = [pool.submit(permits.checked, "c", ALICE)]
        assert started.wait(30)
        shared += [pool.submit(permits.checked, "c", ALICE) for _ in range(2)]
        for _ in range(2):
            assert waiting.acquire(timeout=30)
        assert permits.checked("c", BOB).text == "sessionid=b"
        finish.set()
        assert {permit.result().text for permit in shared} == {"sessionid=a"}
    assert looked_up == [ALICE, BOB]
    permits.checked("c", ALICE)
    assert looked_up == [ALICE, BOB, ALICE], "what opens no canvas is not remembered"


def test_an_error_of_a_look_up_blocks_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(canvas: str, credential: Credential) -> Permit:
        raise RuntimeError(canvas)

    permits = Permits()
    monkeypatch.setattr(module, "_look_up", fail)
    with pytest.raises(RuntimeError):
        permits.checked("c", ALICE)
    monkeypatch.setattr(module, "_look_up", lambda *_: Permit(None, status=404))
    assert permits.checked("c", ALICE).status == 404
