"""Fixtures of every test: labs with people of each role, clients, storage, development data."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from django.test import Client
    from rest_framework.test import APIClient

    from portal.labs.models import Lab, User


# A test says what is right, not how fast.
settings.register_profile("tessera", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tessera")

LONG = (
    "tests/portal/test_postgresql.py",
    "tests/killing/",
    "tests/chaos/",
    "tests/portal/test_rest_schema.py",
    "tests/client/",
    "tests/browser/workbench/test_every_tool.py",
    "tests/browser/test_accessibility.py",
    "tests/portal/access/test_matrix.py",
)
"""Files that take minutes: begun first, so that no worker waits for them at the end.

Each worker gets two at once: one that computes goes with one that waits.
"""


ONE_PORTAL = "tests/client/"
"""Whose fixture ``seat`` starts a portal with its worker."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two more than there are processors: tests of browsers and servers wait most of the time."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """File by file, but those that ask one portal go to one worker: to start it takes a minute."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByServer(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            is_of_it = nodeid.startswith(ONE_PORTAL)
            return ONE_PORTAL if is_of_it else str(super()._split_scope(nodeid))

    return ByServer(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """What is run again is shown at the end, with the reason it failed the first time.

    Workers of portals are no nicer than tests: among these they would get a thirtieth of a
    processor, while a test waits for them. Until the tests are collected, hardly anything of what
    is loaded is garbage. Behind a script's & SIGINT is ignored, and so it would be by every process
    that a test interrupts.
    """
    os.environ.setdefault("TESSERA_WORKER_NICE", "0")
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.rerun_show_tracebacks = True


def _turn(item: pytest.Item) -> int:
    return next((i for i, path in enumerate(LONG) if item.nodeid.startswith(path)), len(LONG))


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look at it after each test.

    Nor now: to find the little that could go takes a second of each worker.
    """
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long ones first, all others as they were. A browser alone gets a second chance."""
    items.sort(key=_turn)
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def tessera_data() -> Path:
    """The folder of development data; skips where ``TESSERA_DATA`` is not set."""
    folder = os.environ.get("TESSERA_DATA")
    if not folder:
        pytest.skip("TESSERA_DATA is not set: the development data is not here")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _log_can_be_emptied_between_tests() -> None:
    """The database refuses to empty the audit log; tests that commit have to, after each.

    ``flush`` emits ``post_migrate``, which sets the triggers again. Django would write the types of
    all models and the permissions for them anew each time, which nothing here asks for.
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
def _nothing_noted_before() -> None:
    """A process remembers what it noted in the audit log; tests begin without."""
    from portal.config.auditing.middleware import NOTED

    NOTED.clear()


@pytest.fixture
def storage(settings: Any, tmp_path: Path) -> Path:
    """A storage root of this test's own."""
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
    """The lab most tests play in."""
    return _lab("north")


@pytest.fixture
def other_lab(db: None) -> Lab:
    """A lab that must see nothing of ``lab``."""
    return _lab("south")


@pytest.fixture
def viewer(lab: Lab) -> User:
    """May look."""
    return _member(lab, "viewer")


@pytest.fixture
def annotator(lab: Lab) -> User:
    """May draw and upload."""
    return _member(lab, "annotator")


@pytest.fixture
def reviewer(lab: Lab) -> User:
    """May accept and reject."""
    return _member(lab, "reviewer")


@pytest.fixture
def manager(lab: Lab) -> User:
    """May manage people and labels."""
    return _member(lab, "manager")


@pytest.fixture
def stranger(other_lab: Lab) -> User:
    """A manager of the other lab."""
    return _member(other_lab, "manager")


@pytest.fixture
def page(client: Client, annotator: User) -> Client:
    """A browser session of the annotator (Django's test client)."""
    client.force_login(annotator)
    return client


@pytest.fixture
def api(annotator: User) -> APIClient:
    """The API as the annotator, with a session; see also ``api_as``."""
    return _api_client(annotator)


@pytest.fixture
def api_as() -> Any:
    """``api_as(user)``: an API client of that user."""
    return _api_client


def _api_client(user: User) -> APIClient:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(user)
    return client
