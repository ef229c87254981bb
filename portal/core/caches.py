"""The cache: shared where it can be, this process's own memory while the shared one is away.

It holds rate limits, used-up codes and what can be computed again. Losing them for a while loosens
a limit; answering 500 would lock everybody out. Values are JSON: a cache that can be written must
not be able to run code.
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

WAIT_S = 0.5  # for Redis: a request is waiting
AWAY_S = 10.0  # Redis is not asked again for so long: each try may cost WAIT_S


class JsonSerializer:
    """How Redis keeps values."""

    def dumps(self, value: Any) -> bytes:
        """As JSON."""
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """From JSON."""
        return json.loads(data)


class JsonFileCache(FileBasedCache):
    """Files of JSON: the time of expiry on the first line, the value on the second."""

    def _write_content(self, file: Any, timeout: Any, value: Any) -> None:
        expires = self.get_backend_timeout(timeout)
        file.write(f"{json.dumps(expires)}\n{json.dumps(value)}".encode())

    def _is_expired(self, f: Any) -> bool:
        try:
            expires = json.loads(f.readline())
        except ValueError:  # torn, or of an earlier version
            expires = 0
        if expires is None or expires >= time.time():
            return False
        f.close()
        self._delete(f.name)  # type: ignore[attr-defined]
        return True

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """The value, or the default where there is none or it cannot be read."""
        try:
            path = self._key_to_file(key, version)  # type: ignore[attr-defined]
            with open(path, "rb") as f:  # noqa: PTH123 - as the base does
                return default if self._is_expired(f) else json.loads(f.read())
        except (FileNotFoundError, ValueError):
            return default

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Extend the life of a value that is there."""
        missing = object()
        value = self.get(key, missing, version)
        if value is missing:
            return False
        self.set(key, value, timeout, version)
        return True


class JsonMemoryCache(LocMemCache):
    """This process's memory; a value comes out as from the shared caches, or is refused as there.

    Raises:
        TypeError: the value has no form in JSON.
    """

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """As Django's."""
        return bool(super().add(key, json.loads(json.dumps(value)), timeout, version))

    def set(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """As Django's."""
        super().set(key, json.loads(json.dumps(value)), timeout, version)


class SteadyCache(BaseCache):
    """Redis or a folder, by ``LOCATION``; their connection and file errors never come out."""

    _away_until: ClassVar[dict[str, float]] = {}  # by location, for all threads of the process

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._location = location
        self._own = JsonMemoryCache("tessera-while-away", dict(params))
        self._shared: BaseCache
        if location.startswith("redis"):
            retry = Retry(NoBackoff(), 0)
            options = {"serializer": JsonSerializer, "retry": retry}
            waits = {"socket_timeout": WAIT_S, "socket_connect_timeout": WAIT_S}
            self._shared = RedisCache(location, {**params, "OPTIONS": options | waits})
        else:
            self._shared = self._folder(location, params)

    def add(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """As Django's."""
        return bool(self._ask("add", key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """As Django's."""
        return self._ask("get", key, default, version)

    def set(
        self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """As Django's."""
        self._ask("set", key, value, timeout, version)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """As Django's."""
        return bool(self._ask("touch", key, timeout, version))

    def delete(self, key: Any, version: int | None = None) -> bool:
        """As Django's."""
        return bool(self._ask("delete", key, version))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """As Django's."""
        return bool(self._ask("has_key", key, version))

    @property
    def is_away(self) -> bool:
        """Whether the shared cache failed just now, and this process's own takes its place."""
        is_own = self._shared is self._own
        return is_own or time.monotonic() < self._away_until.get(self._location, 0.0)

    def clear(self) -> None:
        """Clear both caches."""
        self._own.clear()
        self._ask("clear")

    def _folder(self, location: str, params: dict[str, Any]) -> BaseCache:
        try:
            return JsonFileCache(location, dict(params))
        except OSError:  # its folder is made at once
            logger.warning("cache: its folder cannot be made; rates are limited by each process")
            return self._own

    def _ask(self, what: str, *arguments: Any) -> Any:
        if time.monotonic() >= self._away_until.get(self._location, 0.0):
            try:
                return getattr(self._shared, what)(*arguments)
            except (RedisError, OSError) as error:
                self._away_until[self._location] = time.monotonic() + AWAY_S
                logger.warning(
                    "cache: %s; rates are limited by each process alone", type(error).__name__
                )
        return getattr(self._own, what)(*arguments)
