"""Environment variables of Tessera; an invalid one is refused with a message.

``docs/architecture.md`` and ``docker/compose.yaml`` list the same variables.
"""

from __future__ import annotations

from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

_env = environ.Env()

BROKER_SCHEMES = ("filesystem", "redis", "rediss", "memory")
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")
MAIL_SCHEMES = ("smtp", "smtp+tls", "smtp+ssl", "filemail", "consolemail", "dummymail")
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465}
MAIL_WAIT_S = 10  # for the mail server, as a request may be waiting


def text(name: str, default: str | None = None) -> str:
    """A string; without a default it must be set."""
    value: str = _env.str(name, default=default or "")
    if not value and default is None:
        raise ImproperlyConfigured(f"{name} must be set.")
    return value


def flag(name: str, *, default: bool) -> bool:
    """A boolean: 1/0, true/false, yes/no, on/off."""
    value = text(name, "1" if default else "0").strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be one of 1, 0, true, false; got {value!r}.")


def number(name: str, *, default: float, minimum: float) -> float:
    """A number of at least ``minimum``."""
    raw = text(name, str(default))
    try:
        value = float(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number; got {raw!r}.") from None
    if not value >= minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}; got {raw!r}.")
    return value


def one_of(name: str, choices: tuple[str, ...], *, default: str) -> str:
    """Require one of ``choices``."""
    value = text(name, default).strip().lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    return value


def oidc() -> list[dict[str, object]]:
    """``TESSERA_OIDC_...``: the OpenID Connect provider that people sign in through, or none."""
    names_ = ("NAME", "SERVER", "CLIENT_ID", "CLIENT_SECRET")
    values = {name: text(f"TESSERA_OIDC_{name}", "") for name in names_}
    if not any(values.values()):
        return []
    if missing := [f"TESSERA_OIDC_{name}" for name, value in values.items() if not value]:
        raise ImproperlyConfigured(f"{missing[0]} must be set as well.")
    server = urlsplit(values["SERVER"])
    if server.scheme != "https" and server.hostname not in {"localhost", "127.0.0.1"}:
        raise ImproperlyConfigured("TESSERA_OIDC_SERVER must begin with https://.")
    app: dict[str, object] = {"provider_id": "lab", "name": values["NAME"]}
    app |= {"client_id": values["CLIENT_ID"], "secret": values["CLIENT_SECRET"]}
    return [app | {"settings": {"server_url": values["SERVER"].rstrip("/")}}]


def limits() -> dict[str, float]:
    """``TESSERA_JOB_LIMITS``: ``kind=seconds``, comma-separated; they replace single defaults."""
    limit_of_kind: dict[str, float] = {}
    for entry in names("TESSERA_JOB_LIMITS"):
        kind, _, raw = (part.strip() for part in entry.partition("="))
        try:
            limit_of_kind[kind] = float(raw)
        except ValueError:
            limit_of_kind[kind] = 0.0
        if not kind or not limit_of_kind[kind] > 0:
            raise ImproperlyConfigured(
                "TESSERA_JOB_LIMITS must look like mosaic_build=86400,roi_embed=600;"
                f" got {entry!r}."
            )
    return limit_of_kind


def names(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def networks(name: str) -> list[str]:
    """Comma-separated networks: ``10.20.0.0/16,fd12::/48``."""
    entries = names(name)
    for entry in entries:
        try:
            ip_network(entry)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} must look like 10.20.0.0/16,10.30.4.7; got {entry!r}."
            ) from None
    return entries


def storage_root(default: Path) -> Path:
    """``TESSERA_STORAGE``: the absolute folder that holds assets and what is derived from them."""
    root = Path(text("TESSERA_STORAGE", str(default)))
    if not root.is_absolute():
        raise ImproperlyConfigured(f"TESSERA_STORAGE must be an absolute path; got {str(root)!r}.")
    if root.exists() and not root.is_dir():
        raise ImproperlyConfigured(f"TESSERA_STORAGE is not a folder: {str(root)!r}.")
    return root


def object_storage() -> dict[str, str | float] | None:
    """``TESSERA_STORE`` and ``TESSERA_S3_...``: the bucket that holds originals; None: a folder."""
    if one_of("TESSERA_STORE", ("folder", "s3"), default="folder") == "folder":
        return None
    if find_spec("boto3") is None:
        raise ImproperlyConfigured(
            "TESSERA_STORE is s3, but its driver is not installed: pip install 'tessera[s3]'"
        )
    storage: dict[str, str | float] = {
        "bucket": text("TESSERA_S3_BUCKET"),
        "endpoint": text("TESSERA_S3_ENDPOINT", ""),
        "region": text("TESSERA_S3_REGION", ""),
        "access_key": text("TESSERA_S3_ACCESS_KEY", ""),
        "secret_key": text("TESSERA_S3_SECRET_KEY", ""),
    }
    if bool(storage["access_key"]) != bool(storage["secret_key"]):
        raise ImproperlyConfigured(
            "TESSERA_S3_ACCESS_KEY and TESSERA_S3_SECRET_KEY must both be set, or neither."
        )
    address = urlsplit(str(storage["endpoint"]))
    if storage["endpoint"] and (address.scheme not in {"http", "https"} or not address.hostname):
        raise ImproperlyConfigured(
            "TESSERA_S3_ENDPOINT must look like https://objects.lab.example;"
            f" got {storage['endpoint']!r}."
        )
    gib = number("TESSERA_S3_CACHE_GIB", default=200, minimum=0.001)
    return storage | {"cache_bytes": int(gib * 2**30)}


def index_server() -> dict[str, str | int] | None:
    """``TESSERA_MILVUS_...``: the server that may hold the search's vectors; None: files do."""
    uses_milvus = one_of("TESSERA_INDEX_ENGINE", ("files", "milvus"), default="files") == "milvus"
    url = text("TESSERA_MILVUS_URL", "")
    if not url:
        if uses_milvus:
            raise ImproperlyConfigured(
                "TESSERA_INDEX_ENGINE is milvus, so TESSERA_MILVUS_URL must be set."
            )
        return None
    if find_spec("pymilvus") is None:
        raise ImproperlyConfigured(
            "TESSERA_MILVUS_URL is set, but its client is not installed: pip install "
            "'tessera[milvus]'"
        )
    address = urlsplit(url)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ImproperlyConfigured(
            f"TESSERA_MILVUS_URL must look like http://index.lab.example:19530; got {url!r}."
        )
    return {
        "url": url,
        "token": text("TESSERA_MILVUS_TOKEN", ""),
        "shards": int(number("TESSERA_MILVUS_SHARDS", default=1, minimum=1)),
        "replicas": int(number("TESSERA_MILVUS_REPLICAS", default=1, minimum=1)),
    }


def broker_url(default: str) -> str:
    """``TESSERA_BROKER_URL``: ``filesystem://`` (no server) or ``redis://host:port/db``."""
    url = text("TESSERA_BROKER_URL", default)
    scheme = urlsplit(url).scheme
    if scheme not in BROKER_SCHEMES:
        raise ImproperlyConfigured(
            f"TESSERA_BROKER_URL must begin with one of {', '.join(BROKER_SCHEMES)}; got {url!r}."
        )
    return url


def transport_options(url: str, *, folder: Path) -> dict[str, object]:
    """Options of the broker's transport. The filesystem's folders are made where missing."""
    if not url.startswith("filesystem"):
        # Redis redelivers what was not acknowledged in this time; the job rows make that harmless.
        return {"visibility_timeout": 6 * 3600}
    for name in ("queue", "control"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "control_folder": str(folder / "control"),
        "store_processed": False,
        "polling_interval": 0.1,
    }


def mail(default: str) -> dict[str, object]:
    """``TESSERA_EMAIL_URL`` and ``TESSERA_EMAIL_FROM`` as Django's settings.

    ``smtp+tls://user:password@host:587`` is the usual form; ``dummymail://`` is no mail at all.
    """
    url = text("TESSERA_EMAIL_URL", default)
    parts = urlsplit(url)
    if parts.scheme not in MAIL_SCHEMES:
        raise ImproperlyConfigured(
            f"TESSERA_EMAIL_URL must begin with one of {', '.join(MAIL_SCHEMES)}, like "
            f"smtp+tls://user:password@host:587; got scheme {parts.scheme!r}."
        )
    sender = text("TESSERA_EMAIL_FROM", "tessera@localhost")
    if parts.scheme.startswith("smtp"):
        if not parts.hostname:
            raise ImproperlyConfigured("TESSERA_EMAIL_URL must name the host of the mail server.")
        if not sender or sender.endswith("@localhost"):
            raise ImproperlyConfigured(
                "TESSERA_EMAIL_FROM must be the sender address of mail, like tessera@lab.example."
            )
    config = {
        name: value for name, value in _env.email_url_config(url).items() if value is not None
    }
    config.setdefault("EMAIL_PORT", MAIL_PORTS.get(parts.scheme, 25))
    config |= {"DEFAULT_FROM_EMAIL": sender, "SERVER_EMAIL": sender, "EMAIL_TIMEOUT": MAIL_WAIT_S}
    return config


def cache(broker: str, *, folder: Path) -> dict[str, object]:
    """Django's cache: shared by the processes of one machine, or of all where Redis is used."""
    location = broker if broker.startswith("redis") else str(folder)
    return {
        "BACKEND": "portal.core.caches.FallbackCache",
        "LOCATION": location,
        "KEY_PREFIX": "tessera-cache",
    }


def database(default: str) -> dict[str, object]:
    """``TESSERA_DATABASE_URL`` as Django's settings, with what makes each engine safe here."""
    url = text("TESSERA_DATABASE_URL", default)
    scheme = urlsplit(url).scheme
    if scheme not in DATABASE_SCHEMES:
        raise ImproperlyConfigured(
            "TESSERA_DATABASE_URL must look like sqlite:////absolute/file.sqlite3 or "
            f"postgres://user:password@host:5432/name; got scheme {scheme!r}."
        )
    config: dict[str, object] = dict(_env.db_url_config(url))
    config["CONN_MAX_AGE"] = 60  # opening SQLite takes longer than most queries
    if scheme == "sqlite":
        config["OPTIONS"] = SQLITE_OPTIONS
    else:
        if find_spec("psycopg") is None:
            raise ImproperlyConfigured(
                "TESSERA_DATABASE_URL names PostgreSQL, but its driver is not installed: pip "
                "install 'tessera[postgres]'"
            )
        config["CONN_HEALTH_CHECKS"] = True
    return config


# A web process and workers write the same file: WAL lets readers go on, IMMEDIATE takes the write
# lock at BEGIN so that busy_timeout applies (a deferred transaction fails at once on upgrade).
SQLITE_OPTIONS = {
    "timeout": 30,
    "transaction_mode": "IMMEDIATE",
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON;"
        "PRAGMA busy_timeout=30000;PRAGMA cache_size=-32000;PRAGMA temp_store=MEMORY;"
    ),
}
