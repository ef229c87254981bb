"""Every job takes effect exactly once and none is stuck, for any killed process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.killing.harness import Portal, children_of
from tests.killing.uploads import send_among_kills
from tests.processes import has_exited

CONTROL = "tests.killing.embedding_control"
pytestmark = [
    pytest.mark.endurance,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture(
    params=["filesystem", pytest.param("redis", marks=pytest.mark.services)], scope="module"
)
def engines(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Portal]:
    """SQLite with the filesystem transport, then PostgreSQL with Redis."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "filesystem":
        queue = folder / "broker" / "queue"

        def empty() -> None:
            shutil.rmtree(queue, ignore_errors=True)
            queue.mkdir(parents=True)

        made = Portal(folder, f"sqlite:///{folder / 'db.sqlite3'}", "filesystem://", empty)
        yield made
        made.ask_no_more()
        return
    with services.own_database() as database_url, services.own_redis() as (url, client):

        def flush() -> None:
            client.flushdb()

        made = Portal(folder, database_url, url, flush)
        yield made
        made.ask_no_more()


one_engine = pytest.mark.parametrize("engines", ["filesystem"], indirect=True)
"""For what concerns processes, not the database or the broker.

Whole trees too: ``tests.chaos`` kills those, their web processes among uploads on
PostgreSQL with Redis.
"""


@pytest.fixture
def portal(engines: Portal) -> Iterator[Portal]:
    """The same database and broker for the module's tests; processes of each test's own."""
    engines.control("clear")
    engines.empty_broker()
    engines.log.unlink(missing_ok=True)
    engines.processes.clear()
    yield engines
    engines.close()


def _once(job: dict[str, object]) -> None:
    assert (job["state"], job["effects"], job["ended"]) == ("succeeded", 1, 1), job


def _gone(pids: list[int], *, within_s: float, what: str) -> None:
    assert all(has_exited(pid, within_s=within_s) for pid in pids), what


def test_a_job_survives_the_kill_of_the_process_that_runs_it(portal: Portal) -> None:
    portal.start_worker()
    portal.start_reaper()
    portal.control("submit", "15", "a")
    ((_, pid, _),) = portal.wait_for_attempts(1)
    os.kill(pid, signal.SIGKILL)
    job = portal.wait_until_ended()["a"]
    _once(job)
    assert job["attempts"] == 2


def test_a_job_survives_the_kill_of_its_worker(portal: Portal) -> None:
    worker = portal.start_worker()
    portal.start_reaper()
    portal.control("submit", "15", "a")
    ((_, child, parent),) = portal.wait_for_attempts(1)
    os.kill(parent, signal.SIGKILL)
    worker.wait()
    _gone([child], within_s=5, what="the pool child outlived its worker")
    portal.start_worker("two")
    job = portal.wait_until_ended()["a"]
    _once(job)
    assert job["attempts"] == 2


@one_engine
def test_a_job_survives_the_kill_of_all_processes(portal: Portal) -> None:
    serve = [sys.executable, "manage.py", "serve", "--port", "8790"]
    tree = portal.start(serve)
    portal.control("submit", "20", "a", "b")
    began = portal.wait_for_attempts(2)
    tree.kill()
    tree.wait()
    left = [pid for _, pid, parent in began for pid in (pid, parent)]
    _gone(left, within_s=5, what="the tree left processes behind")
    portal.start(serve)
    for job in portal.wait_until_ended().values():
        _once(job)


@one_engine
def test_serve_starts_a_killed_worker_and_reaper_again(portal: Portal) -> None:
    tree = portal.start([sys.executable, "manage.py", "serve", "--port", "8795"])
    portal.control("submit", "20", "a", "b")
    killed = {parent for _, _, parent in portal.wait_for_attempts(2)}
    for pid in killed | set(_roles_of(tree.pid, "reaper")):
        os.kill(pid, signal.SIGKILL)
    for job in portal.wait_until_ended().values():
        _once(job)
    assert tree.poll() is None
    assert "worker ended unexpectedly (signal SIGKILL)" in portal.output.read_text()


def _roles_of(pid: int, word: str) -> list[int]:
    """The children of ``serve`` whose command line has the word."""
    children = [
        child
        for child in children_of(pid)
        if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert children, f"serve has no {word}"
    return children


def test_a_stopped_worker_returns_its_job_without_spending_an_attempt(
    portal: Portal,
) -> None:
    """An upgrade stops the worker gracefully and starts the one of the next release."""
    old = portal.start_worker()
    portal.start_reaper()
    portal.control("submit", "100", "a")  # longer than its worker is given to stop
    portal.wait_for_attempts(1)
    os.kill(old.pid, signal.SIGTERM)
    old.wait(timeout=45)
    assert portal.control("state")["a"]["state"] == "queued"
    portal.start_worker("next")
    job = portal.wait_until_ended()["a"]
    _once(job)
    assert job["attempts"] == 1, job
    assert len(portal.attempts()) == 2


@one_engine
@pytest.mark.parametrize(
    ("kind", "error", "attempts"),
    [("sleep_for_ever", "time-limit", 1), ("block_for_ever", "worker-lost", 2)],
)
def test_an_endless_job_is_killed_and_frees_its_slot(
    portal: Portal, kind: str, error: str, attempts: int
) -> None:
    """Both places of the worker are taken by jobs that never end; the third one runs after all."""
    portal.start_worker()
    portal.start_reaper()
    portal.control("submit", "1", f"{kind}:a", f"{kind}:b", "c")
    jobs = portal.wait_until_ended()
    _once(jobs.pop("c"))
    for job in jobs.values():
        assert (job["state"], job["error"], job["ended"]) == ("failed", error, 1), job
        assert job["attempts"] == attempts
    stuck = [pid for name, pid, _ in portal.attempts() if name != "c"]
    _gone(stuck, within_s=15, what="a process that hears nobody lives on")


def test_jobs_survive_an_emptied_broker(portal: Portal) -> None:
    portal.control("submit", "1", "a", "b", "c")
    portal.empty_broker()
    portal.start_worker()
    portal.start_reaper()
    for job in portal.wait_until_ended().values():
        _once(job)


def test_a_message_delivered_three_times_has_one_effect(portal: Portal) -> None:
    portal.control("submit", "8", "a", "b")
    portal.control("again", "2")
    portal.start_worker()
    portal.start_reaper()
    for job in portal.wait_until_ended().values():
        _once(job)
        assert job["attempts"] == 1


def test_two_workers_race_and_each_job_has_one_effect(portal: Portal) -> None:
    names = [f"job-{number}" for number in range(12)]
    portal.control("submit", "2", *names)
    portal.control("again", "1")
    portal.start_worker("one")
    portal.start_worker("two")
    portal.start_reaper()
    jobs = portal.wait_until_ended()
    assert set(jobs) == set(names)
    for job in jobs.values():
        _once(job)
    assert len(portal.attempts()) == len(names)


def test_a_paused_worker_writes_nothing_when_it_resumes(portal: Portal) -> None:
    def losses() -> int:
        return portal.output.read_text().count("lease lost")

    first = portal.start_worker("one")
    portal.start_reaper()
    portal.control("submit", "15", "a")
    ((_, pid, _),) = portal.wait_for_attempts(1)
    os.kill(pid, signal.SIGSTOP)
    os.kill(first.pid, signal.SIGSTOP)  # or it would see that its child stands still
    portal.start_worker("two")
    portal.wait_for_attempts(2)
    before = losses()
    os.kill(first.pid, signal.SIGCONT)
    os.kill(pid, signal.SIGCONT)
    _once(portal.wait_until_ended()["a"])
    portal.wait_until(lambda: losses() > before, "the resumed process to give up")
    _once(portal.control("state")["a"])


@one_engine
def test_regions_of_a_batch_survive_a_kill_in_its_middle(
    portal: Portal,
) -> None:
    """Jobs in one batch, killed while their patches are encoded: each is then run by itself.

    A batch leaves the workers of a moment ago their share, so it has two of the four at least.
    """

    def jobs() -> dict[str, dict[str, object]]:
        reply: dict[str, dict[str, object]] = portal.ask(CONTROL, "embedded")
        return reply

    portal.ask(CONTROL, "draw", "4")
    portal.start_reaper()
    # a batch of four on a processor, and the time that loading torch holds the interpreter for
    portal.env |= {"TESSERA_EMBED_BATCH_SIZE": "4", "TESSERA_JOB_LEASE_S": "8"}
    worker = portal.start_worker(places=1)

    def together() -> set[str]:
        return {
            i for i, job in jobs().items() if (job["state"], job["phase"]) == ("running", "patches")
        }

    portal.wait_until(lambda: len(together()) > 1, "a batch")
    batch = together()
    assert all(job["vectors"] == 0 for job in jobs().values())
    for pid in children_of(worker.pid):
        os.kill(pid, signal.SIGKILL)
    portal.wait_until(
        lambda: all(job["state"] not in {"queued", "running"} for job in jobs().values()),
        "every region to be embedded",
    )
    for number, job in jobs().items():
        assert (job["state"], job["ended"], job["vectors"]) == ("succeeded", 1, 1), job
        assert job["attempts"] == 2 or number not in batch, job


@one_engine
def test_a_report_s_pictures_survive_the_kill_and_are_made_once(portal: Portal) -> None:
    """Killed among them: the next attempt makes the rest, and keeps those that exist."""

    def made() -> dict[str, Any]:
        reply: dict[str, Any] = portal.ask(CONTROL, "pictured")
        return reply

    portal.ask(CONTROL, "picture", "40")
    portal.start_reaper()
    worker = portal.start_worker(places=1)
    portal.wait_until(lambda: len(made()["pictures"]) >= 2, "some pictures")
    for pid in children_of(worker.pid):
        os.kill(pid, signal.SIGKILL)
    before = made()
    assert before["state"] == "running" and 2 <= len(before["pictures"]) < 40, before
    portal.wait_until(lambda: made()["state"] not in {"queued", "running"}, "all pictures")
    after = made()
    assert (after["state"], after["attempts"], after["ended"]) == ("succeeded", 2, 1), after
    assert after["result"] == {"pictures": 40, "unreadable": 0}
    assert len(after["pictures"]) == 40
    assert before["pictures"].items() <= after["pictures"].items()


@one_engine
def test_files_sent_in_pieces_arrive_completely_despite_kills(portal: Portal) -> None:
    done = send_among_kills(portal, files=2, port=8799, seed=3)
    assert sum(count for what, count in done.items() if what.startswith("kills of")) == 4
