"""Cache that falls back to the memory of the process while the shared cache is unavailable.

It holds rate limits, used one-time codes and computed values. Losing them for a while loosens a
limit, whereas an error would lock everybody out. Values are JSON instead of pickles, so that write
access to the cache does not allow code execution.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, ClassVar

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

TIMEOUT_S = 0.5  # for Redis, since a request waits
RETRY_AFTER_S = 10.0  # pause before Redis is tried again, which may take TIMEOUT_S


class JsonSerializer:
    """JSON serialisation of cached values for Redis."""

    def dumps(self, value: Any) -> bytes:
        """Serialise to JSON."""
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Deserialise from JSON."""
        return json.loads(data)


class JsonFileCache(FileBasedCache):
    """File cache in JSON: the time of expiry on the first line, the value on the second."""

    def _write_content(self, file: Any, timeout: Any, value: Any) -> None:
        expires = self.get_backend_timeout(timeout)
        file.write(f"{json.dumps(expires)}\n{json.dumps(value)}".encode())

    def _is_expired(self, f: Any) -> bool:
        try:
            expires = json.loads(f.readline())
        except ValueError:  # incomplete, or written by an earlier version
            expires = 0
        if expires is None or expires >= time.time():
            return False
        f.close()
        self._delete(f.name)  # type: ignore[attr-defined]
        return True

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Return the value, or the default if it is missing or unreadable."""
        try:
            path = self._key_to_file(key, version)  # type: ignore[attr-defined]
            with open(path, "rb") as f:  # noqa: PTH123 - as the base does
                return default if self._is_expired(f) else json.loads(f.read())
        except (FileNotFoundError, ValueError):
            return default

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Extend the life of an existing value."""
        missing = object()
        value = self.get(key, missing, version)
        if value is missing:
            return False
        self.set(key, value, timeout, version)
        return True


class JsonMemoryCache(LocMemCache):
    """Memory cache that accepts and returns the same JSON values as the shared caches.

    Raises:
        TypeError: The value cannot be serialised to JSON.
    """

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """See Django's ``BaseCache``."""
        return bool(super().add(key, json.loads(json.dumps(value)), timeout, version))

    def set(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """See Django's ``BaseCache``."""
        super().set(key, json.loads(json.dumps(value)), timeout, version)


class FallbackCache(BaseCache):
    """Cache in Redis or a folder, by ``LOCATION``, that hides connection and file errors."""

    _away_until: ClassVar[dict[str, float]] = {}  # by location, shared by all threads

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._location = location
        self._local = JsonMemoryCache("tessera-while-away", dict(params))
        self._shared: BaseCache
        if location.startswith("redis"):
            retry = Retry(NoBackoff(), 0)
            options = {"serializer": JsonSerializer, "retry": retry}
            waits = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
            self._shared = RedisCache(location, {**params, "OPTIONS": options | waits})
        else:
            self._shared = self._folder(location, params)

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """See Django's ``BaseCache``."""
        return bool(self._call("add", key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """See Django's ``BaseCache``."""
        return self._call("get", key, default, version)

    def set(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """See Django's ``BaseCache``."""
        self._call("set", key, value, timeout, version)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """See Django's ``BaseCache``."""
        return bool(self._call("touch", key, timeout, version))

    def delete(self, key: Any, version: int | None = None) -> bool:
        """See Django's ``BaseCache``."""
        return bool(self._call("delete", key, version))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """See Django's ``BaseCache``."""
        return bool(self._call("has_key", key, version))

    @property
    def is_away(self) -> bool:
        """Return whether the shared cache has failed and the process's memory is used instead."""
        is_local = self._shared is self._local
        return is_local or time.monotonic() < self._away_until.get(self._location, 0.0)

    def clear(self) -> None:
        """Clear both caches."""
        self._local.clear()
        self._call("clear")

    def _folder(self, location: str, params: dict[str, Any]) -> BaseCache:
        try:
            return JsonFileCache(location, dict(params))
        except OSError:  # its folder is made at once
            logger.warning("cache: its folder cannot be made; rates are limited by each process")
            return self._local

    def _call(self, method: str, *arguments: Any) -> Any:
        if time.monotonic() >= self._away_until.get(self._location, 0.0):
            try:
                return getattr(self._shared, method)(*arguments)
            except (RedisError, OSError) as error:
                self._away_until[self._location] = time.monotonic() + RETRY_AFTER_S
                logger.warning(
                    "cache: %s; rates are limited by each process alone", type(error).__name__
                )
        return getattr(self._local, method)(*arguments)
