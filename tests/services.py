"""PostgreSQL and Redis on their standard ports: a database and a Redis db of the test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis

POSTGRES = os.environ.get("TESSERA_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("TESSERA_TEST_REDIS", "redis://127.0.0.1:6379")


def missing(error: Exception) -> None:
    """Skip; or fail where CI insists on the services."""
    if os.environ.get("TESSERA_REQUIRE_SERVICES") == "1":
        pytest.fail(f"PostgreSQL and Redis must be here: {error}")
    pytest.skip(f"PostgreSQL or Redis is not on its standard port: {error}")


@contextmanager
def own_database() -> Iterator[str]:
    """The URL of a fresh PostgreSQL database, dropped afterwards."""
    name = f"tessera_test_{os.getpid()}"
    try:
        server = psycopg.connect(POSTGRES, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        missing(error)
        raise
    with server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            parts = urlsplit(POSTGRES)
            yield urlunsplit((parts.scheme, parts.netloc, f"/{name}", "", ""))
        finally:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def own_redis() -> Iterator[tuple[str, redis.Redis]]:
    """The URL of an empty Redis db and a client of it, emptied afterwards."""
    for number in range(15, 0, -1):
        url = f"{REDIS}/{number}"
        client = redis.Redis.from_url(url, socket_connect_timeout=3)
        try:
            free = client.dbsize() == 0
        except redis.exceptions.ConnectionError as error:
            missing(error)
            raise
        if not free:
            continue
        client.set("tessera-test-owner", os.getpid())
        try:
            yield url, client
        finally:
            client.flushdb()
            client.close()
        return
    pytest.fail("no empty Redis db among 1-15")
