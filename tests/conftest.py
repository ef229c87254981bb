"""Fixtures for all tests: labs, users of each role, clients, storage, development data."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.test import Client
    from rest_framework.test import APIClient

    from portal.labs.models import Lab, User
    from tests.milvus_server import RunningMilvus


LONG = (
    "tests/portal/test_postgresql.py",
    "tests/killing/",
    "tests/chaos/",
    "tests/portal/backups/test_move.py",
    "tests/portal/test_rest_schema.py",
    "tests/client/",
    "tests/browser/workbench/test_every_tool.py",
    "tests/browser/test_accessibility.py",
    "tests/portal/access/test_matrix.py",
)
"""Files that take minutes, started first so that no worker runs one of them alone at the end.

Each worker gets two at once: the order pairs one that computes with one that waits.
"""


SLOW = ("tests/browser/", "tests/chaos/", "tests/client/", "tests/killing/")
"""Folders whose tests start a portal, and a browser or workers: all are marked ``slow``."""


ONE_PORTAL = "tests/client/"
"""Folder whose session fixture ``seat`` starts a portal with its worker."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the processor count plus two: tests of browsers and servers mostly wait."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Schedule by file; tests that share a server run in one worker."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByServer(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if "milvus" in nodeid:
                return "milvus"
            if nodeid.startswith(ONE_PORTAL):
                return ONE_PORTAL
            return str(super()._split_scope(nodeid))

    return ByServer(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment of the run before anything is collected."""
    # tests wait for the workers of the portals they start
    os.environ.setdefault("TESSERA_WORKER_NICE", "0")
    # OCR takes seconds a file; tests of it set the rule they need
    from django.conf import settings

    rule = os.environ.setdefault("TESSERA_PHI_IN_PIXELS", "off")
    settings.TESSERA_PHI_IN_PIXELS = rule  # read from the environment before this file was
    gc.disable()  # until collection ends: little of what is imported is garbage
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell starts background jobs with SIGINT ignored, and child processes inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the folders of ``SLOW`` where the chosen marks leave slow tests out."""
    chosen = config.option.markexpr
    if "not slow" not in chosen or " or " in chosen:
        return None
    folder = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    return True if folder in SLOW else None


def _priority(item: pytest.Item) -> int:
    return next((i for i, path in enumerate(LONG) if item.nodeid.startswith(path)), len(LONG))


def pytest_collectstart() -> None:
    """Exempt what was imported before: hypothesis looks for referrers among all other objects."""
    gc.freeze()


def pytest_collection_finish() -> None:
    """Exempt imported modules from the garbage collections that follow each test."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``SLOW``, and run long files first (after the order of pytest-django)."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_priority)


MILVUS = pytest.StashKey["RunningMilvus"]()


@pytest.fixture(scope="session")
def milvus_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningMilvus]:
    """A Milvus server, installed by ``tests.milvus_server``."""
    from tests.milvus_server import started

    running = started(tmp_path_factory.mktemp("milvus"))
    request.config.stash[MILVUS] = running
    yield running
    running.kill()


@pytest.fixture
def milvus(milvus_server: RunningMilvus) -> RunningMilvus:
    """The Milvus server, running."""
    if milvus_server.process.poll() is not None:
        milvus_server.start()
    return milvus_server


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop Milvus after the last test in a row that uses it: idle, it takes a fifth of a core."""
    is_used = "milvus" in item.nodeid and MILVUS in item.config.stash
    if is_used and (nextitem is None or "milvus" not in nextitem.nodeid):
        item.config.stash[MILVUS].kill()


@pytest.fixture(scope="session")
def tessera_data() -> Path:
    """Folder of development data; skips the test if ``TESSERA_DATA`` is not set."""
    folder = os.environ.get("TESSERA_DATA")
    if not folder:
        pytest.skip("TESSERA_DATA is not set")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _flush_drops_audit_triggers() -> None:
    """Let ``flush`` empty the append-only audit log between tests that commit.

    ``flush`` emits ``post_migrate``, which creates the triggers again. Content types and
    permissions, which Django would also create each time, are not needed.
    """
    from django.contrib.contenttypes.management import create_contenttypes
    from django.core.management.commands import flush
    from django.db.models.signals import post_migrate

    from portal.audit.append_only import triggers_drop

    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")

    sql_flush = flush.sql_flush

    def without_triggers(style: Any, connection: Any, *args: Any, **options: Any) -> list[str]:
        triggers_drop(connection.alias)
        return sql_flush(style, connection, *args, **options)

    flush.sql_flush = without_triggers


@pytest.fixture(autouse=True)
def _clear_recent_audit_entries() -> None:
    """Clear the process's memory of recent audit entries."""
    from portal.operations.audit_middleware import RECENT

    RECENT.clear()


@pytest.fixture
def storage(settings: Any, tmp_path: Path) -> Path:
    """Empty storage root."""
    settings.TESSERA_STORAGE = tmp_path / "storage"
    settings.TESSERA_STORAGE.mkdir()
    return settings.TESSERA_STORAGE


def _lab(slug: str) -> Lab:
    from portal.labs.models import Lab

    return Lab.objects.create(name=slug.title(), slug=slug)


def _member(lab: Lab, role: str) -> User:
    from portal.labs.models import Membership, User

    user = User.objects.create_user(f"{role}@{lab.slug}.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=role)
    return user


@pytest.fixture
def lab(db: None) -> Lab:
    """Lab of the users below."""
    return _lab("north")


@pytest.fixture
def other_lab(db: None) -> Lab:
    """Lab that must see nothing of ``lab``."""
    return _lab("south")


@pytest.fixture
def viewer(lab: Lab) -> User:
    """User who may only read."""
    return _member(lab, "viewer")


@pytest.fixture
def annotator(lab: Lab) -> User:
    """User who may draw and upload."""
    return _member(lab, "annotator")


@pytest.fixture
def reviewer(lab: Lab) -> User:
    """User who may accept and reject."""
    return _member(lab, "reviewer")


@pytest.fixture
def manager(lab: Lab) -> User:
    """User who may manage people and labels."""
    return _member(lab, "manager")


@pytest.fixture
def stranger(other_lab: Lab) -> User:
    """Manager of the other lab."""
    return _member(other_lab, "manager")


@pytest.fixture
def page(client: Client, annotator: User) -> Client:
    """Django test client signed in as the annotator."""
    client.force_login(annotator)
    return client


@pytest.fixture
def api(annotator: User) -> APIClient:
    """API client of the annotator; see also ``api_as``."""
    return _api_client(annotator)


@pytest.fixture
def api_as() -> Any:
    """Factory of API clients: ``api_as(user)``."""
    return _api_client


def _api_client(user: User) -> APIClient:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(user)
    return client
