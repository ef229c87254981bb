from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core.caches import AWAY_S, WAIT_S, JsonMemoryCache, SteadyCache
from tests.services import own_redis


@pytest.fixture(autouse=True)
def nothing_is_away() -> Iterator[None]:
    SteadyCache._away_until.clear()
    yield
    SteadyCache._away_until.clear()


@pytest.fixture
def files(tmp_path: Path) -> SteadyCache:
    return SteadyCache(str(tmp_path / "cache"), {})


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def use(cache: SteadyCache) -> None:
    cache.clear()
    assert cache.get("key", "none") == "none"
    assert cache.add("key", [1.5, 2], 60)
    assert not cache.add("key", "other", 60)
    assert cache.get("key") == [1.5, 2]
    assert cache.touch("key", 60) and cache.has_key("key")
    assert cache.delete("key") and not cache.has_key("key")


def test_files_keep_values_for_other_processes(files: SteadyCache, tmp_path: Path) -> None:
    use(files)
    files.set("key", {"a": 1}, 60)
    assert SteadyCache(str(tmp_path / "cache"), {}).get("key") == {"a": 1}


def test_values_expire(files: SteadyCache) -> None:
    files.set("key", 1, 0.05)
    time.sleep(0.1)
    assert files.get("key") is None


def test_files_hold_no_pickles_and_a_torn_one_is_no_value(
    files: SteadyCache, tmp_path: Path
) -> None:
    files.set("key", [1], 60)
    (file,) = (tmp_path / "cache").rglob("*.djcache")
    assert file.read_bytes().endswith(b"\n[1]")
    file.write_bytes(b"\x80\x05torn")
    assert files.get("key", "none") == "none"


def test_without_redis_the_process_counts_alone_and_soon() -> None:
    cache = SteadyCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    began = time.monotonic()
    use(cache)
    assert time.monotonic() - began < 1.0


def test_a_redis_that_never_answers_costs_one_wait_not_one_each_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cache = SteadyCache(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", {})
        began = time.monotonic()
        use(cache)
        use(cache)
    assert time.monotonic() - began < 3 * WAIT_S


def test_redis_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = SteadyCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    cache.set("key", 1)
    asked: list[str] = []
    monkeypatch.setattr(cache._shared, "get", lambda *_: asked.append("redis") or 7)
    assert cache.get("key") == 1 and asked == []
    soon = time.monotonic() + AWAY_S
    monkeypatch.setattr("portal.core.caches.time.monotonic", lambda: soon)
    assert cache.get("key") == 7 and asked == ["redis"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    use(SteadyCache(str(tmp_path / "cache"), {}))


def test_the_process_alone_keeps_only_what_the_shared_cache_would() -> None:
    away = SteadyCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    for cache in (away, JsonMemoryCache("alone", {})):
        use(cache)
        cache.set("key", (1, "two"), 60)
        assert cache.get("key") == [1, "two"]
        assert cache.add("count", 1, 60) and cache.incr("count") == 2
        for write in (cache.set, cache.add):
            with pytest.raises(TypeError):
                write("other", {("a", "b"): 1}, 60)


@pytest.mark.services
def test_redis_keeps_json_for_other_processes() -> None:
    with own_redis() as (url, client):
        use(SteadyCache(url, {"KEY_PREFIX": "ours"}))
        SteadyCache(url, {"KEY_PREFIX": "ours"}).set("key", [1.5], 60)
        assert SteadyCache(url, {"KEY_PREFIX": "ours"}).get("key") == [1.5]
        assert client.get("ours:1:key") == b"[1.5]"
        assert SteadyCache._away_until == {}
