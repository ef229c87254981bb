"""Configuration by environment: what is wrong is refused with a line that names the variable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core import environment

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("TESSERA_BROKER_URL", "amqp://host", lambda: environment.broker_url("filesystem://")),
        ("TESSERA_DATABASE_URL", "mysql://host/db", lambda: environment.database("sqlite:////x")),
        ("TESSERA_STORAGE", "relative/folder", lambda: environment.storage_root(Path("/x"))),
        ("TESSERA_JOB_LIMITS", "mosaic_build", environment.limits),
        (
            "TESSERA_LOG_FORMAT",
            "xml",
            lambda: environment.one_of("TESSERA_LOG_FORMAT", ("line", "json"), default="line"),
        ),
        ("TESSERA_JOB_LIMITS", "mosaic_build=soon", environment.limits),
        ("TESSERA_JOB_LIMITS", "mosaic_build=-1", environment.limits),
        ("TESSERA_TLS", "maybe", lambda: environment.flag("TESSERA_TLS", default=True)),
        (
            "TESSERA_JOB_LEASE_S",
            "soon",
            lambda: environment.number("TESSERA_JOB_LEASE_S", default=30, minimum=1),
        ),
        (
            "TESSERA_JOB_LEASE_S",
            "0",
            lambda: environment.number("TESSERA_JOB_LEASE_S", default=30, minimum=1),
        ),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: object
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name):
        read()  # type: ignore[operator]


def test_storage_must_be_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    monkeypatch.setenv("TESSERA_STORAGE", str(file))
    with pytest.raises(ImproperlyConfigured, match="folder"):
        environment.storage_root(tmp_path)


def test_sqlite_is_made_safe_under_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_DATABASE_URL", "sqlite:////tmp/x.sqlite3")
    config = environment.database("sqlite:////y")
    options = config["OPTIONS"]
    assert config["CONN_MAX_AGE"] > 0
    assert options["transaction_mode"] == "IMMEDIATE"
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON"):
        assert pragma in options["init_command"]


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("TESSERA_SECRET_KEY", "TESSERA_SECRET_KEY must be set"),
        ("TESSERA_ALLOWED_HOSTS", "TESSERA_ALLOWED_HOSTS must"),
    ],
)
def test_production_does_not_start_half_configured(missing: str, line: str, tmp_path: Path) -> None:
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.production",
        "TESSERA_SECRET_KEY": "0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQ",
        "TESSERA_ALLOWED_HOSTS": "tessera.example",
        "TESSERA_BROKER_FOLDER": str(tmp_path),
    }
    del env[missing]
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=env, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert line in done.stderr.decode()


def test_production_settings_load_when_they_are_configured(tmp_path: Path) -> None:
    """``make endurance`` starts the portal with them."""
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.production",
        "TESSERA_SECRET_KEY": "0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQ",
        "TESSERA_ALLOWED_HOSTS": "tessera.example",
        "TESSERA_BROKER_FOLDER": str(tmp_path),
    }
    script = (
        "from django.conf import settings as s\n"
        "print(s.DEBUG, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, *s.ALLOWED_HOSTS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, check=True
    )
    assert done.stdout.decode().split() == ["False", "True", "True", "tessera.example"]


def test_postgresql_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_DATABASE_URL", "postgres://user:word@host:5432/name")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImproperlyConfigured, match=r"tessera\[postgres\]"):
        environment.database("sqlite:////x")


def test_mail_is_read_from_one_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_EMAIL_URL", "smtp+tls://me%40lab:p%2Fw@mail.lab.example")
    monkeypatch.setenv("TESSERA_EMAIL_FROM", "tessera@lab.example")
    settings = environment.mail("dummymail://")
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.lab.example", 587)
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == ("me@lab", "p/w")
    assert settings["EMAIL_USE_TLS"] is True
    assert settings["DEFAULT_FROM_EMAIL"] == "tessera@lab.example"


@pytest.mark.parametrize(
    ("url", "sender", "named"),
    [
        ("pigeon://loft", "a@b.example", "TESSERA_EMAIL_URL"),
        ("smtp://", "a@b.example", "TESSERA_EMAIL_URL"),
        ("smtp://mail.lab.example", "", "TESSERA_EMAIL_FROM"),
    ],
)
def test_mail_that_could_not_be_sent_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, url: str, sender: str, named: str
) -> None:
    monkeypatch.setenv("TESSERA_EMAIL_URL", url)
    monkeypatch.setenv("TESSERA_EMAIL_FROM", sender)
    with pytest.raises(ImproperlyConfigured, match=named):
        environment.mail("dummymail://")


def test_without_settings_there_is_no_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESSERA_EMAIL_URL", raising=False)
    assert str(environment.mail("dummymail://")["EMAIL_BACKEND"]).endswith("dummy.EmailBackend")


def test_originals_are_in_a_folder_unless_a_bucket_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TESSERA_S3_BUCKET", "slides")
    assert environment.object_storage() is None
    monkeypatch.setattr(environment, "find_spec", lambda name: object())
    monkeypatch.setenv("TESSERA_STORE", "s3")
    monkeypatch.setenv("TESSERA_S3_CACHE_GIB", "2")
    settings = environment.object_storage()
    assert settings is not None
    assert (settings["bucket"], settings["endpoint"], settings["cache_bytes"]) == (
        "slides",
        "",
        2 * 2**30,
    )


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("TESSERA_STORE", "bucket", "one of folder, s3"),
        ("TESSERA_S3_BUCKET", "", "TESSERA_S3_BUCKET must be set"),
        ("TESSERA_S3_ENDPOINT", "objects.lab.example", "https://objects.lab.example"),
        ("TESSERA_S3_ACCESS_KEY", "alone", "must both be set, or neither"),
        ("TESSERA_S3_CACHE_GIB", "0", "at least 0.001"),
    ],
)
def test_a_bucket_that_is_half_described_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    monkeypatch.setattr(environment, "find_spec", lambda name: object())
    for known, usual in {"TESSERA_STORE": "s3", "TESSERA_S3_BUCKET": "slides", name: value}.items():
        monkeypatch.setenv(known, usual)
    with pytest.raises(ImproperlyConfigured, match=re.escape(line)):
        environment.object_storage()


def test_a_bucket_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "find_spec", lambda name: None)
    monkeypatch.setenv("TESSERA_STORE", "s3")
    with pytest.raises(ImproperlyConfigured, match=r"tessera\[s3\]"):
        environment.object_storage()


def test_the_index_server_is_read_and_a_wrong_one_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymilvus")
    assert environment.index_server() is None
    monkeypatch.setenv("TESSERA_INDEX_ENGINE", "milvus")
    with pytest.raises(ImproperlyConfigured, match="TESSERA_MILVUS_URL"):
        environment.index_server()
    monkeypatch.setenv("TESSERA_MILVUS_URL", "index:19530")
    with pytest.raises(ImproperlyConfigured, match=r"like http://index\.lab\.example:19530"):
        environment.index_server()
    monkeypatch.setenv("TESSERA_MILVUS_URL", "http://index:19530")
    monkeypatch.setenv("TESSERA_MILVUS_SHARDS", "3")
    settings = {"url": "http://index:19530", "token": "", "shards": 3, "replicas": 1}
    assert environment.index_server() == settings
