from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core.caches import RETRY_AFTER_S, TIMEOUT_S, FallbackCache, JsonMemoryCache
from tests.services import own_redis


@pytest.fixture(autouse=True)
def reachable_redis() -> Iterator[None]:
    FallbackCache._away_until.clear()
    yield
    FallbackCache._away_until.clear()


@pytest.fixture
def files(tmp_path: Path) -> FallbackCache:
    return FallbackCache(str(tmp_path / "cache"), {})


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def use(cache: FallbackCache) -> None:
    cache.clear()
    assert cache.get("key", "none") == "none"
    assert cache.add("key", [1.5, 2], 60)
    assert not cache.add("key", "other", 60)
    assert cache.get("key") == [1.5, 2]
    assert cache.touch("key", 60) and cache.has_key("key")
    assert cache.delete("key") and not cache.has_key("key")


def test_files_keep_values_for_other_processes(files: FallbackCache, tmp_path: Path) -> None:
    use(files)
    files.set("key", {"a": 1}, 60)
    assert FallbackCache(str(tmp_path / "cache"), {}).get("key") == {"a": 1}


def test_values_expire(files: FallbackCache, monkeypatch: pytest.MonkeyPatch) -> None:
    files.set("key", 1, 60)
    later_s = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later_s)
    assert files.get("key") is None


def test_files_hold_no_pickles_and_a_torn_one_is_no_value(
    files: FallbackCache, tmp_path: Path
) -> None:
    files.set("key", [1], 60)
    (file,) = (tmp_path / "cache").rglob("*.djcache")
    assert file.read_bytes().endswith(b"\n[1]")
    file.write_bytes(b"\x80\x05torn")
    assert files.get("key", "none") == "none"


def test_without_redis_the_process_counts_locally() -> None:
    cache = FallbackCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    began = time.monotonic()
    use(cache)
    assert time.monotonic() - began < 1.0


def test_a_redis_that_never_answers_costs_one_wait_not_one_each_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cache = FallbackCache(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", {})
        began = time.monotonic()
        use(cache)
        use(cache)
    assert time.monotonic() - began < 3 * TIMEOUT_S


def test_redis_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = FallbackCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    cache.set("key", 1)
    requests: list[str] = []
    monkeypatch.setattr(cache._shared, "get", lambda *_: requests.append("redis") or 7)
    assert cache.get("key") == 1 and requests == []
    soon = time.monotonic() + RETRY_AFTER_S
    monkeypatch.setattr("portal.core.caches.time.monotonic", lambda: soon)
    assert cache.get("key") == 7 and requests == ["redis"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    use(FallbackCache(str(tmp_path / "cache"), {}))


def test_the_local_cache_and_the_fallback_store_only_json() -> None:
    away = FallbackCache(f"redis://127.0.0.1:{closed_port()}/0", {})
    for cache in (away, JsonMemoryCache("alone", {})):
        use(cache)
        cache.set("key", (1, "two"), 60)
        assert cache.get("key") == [1, "two"]
        assert cache.add("count", 1, 60) and cache.incr("count") == 2
        for write in (cache.set, cache.add):
            with pytest.raises(TypeError):
                write("other", {("a", "b"): 1}, 60)


@pytest.mark.services
def test_redis_shares_json_between_processes() -> None:
    with own_redis() as (url, client):
        use(FallbackCache(url, {"KEY_PREFIX": "ours"}))
        FallbackCache(url, {"KEY_PREFIX": "ours"}).set("key", [1.5], 60)
        assert FallbackCache(url, {"KEY_PREFIX": "ours"}).get("key") == [1.5]
        assert client.get("ours:1:key") == b"[1.5]"
        assert FallbackCache._away_until == {}
