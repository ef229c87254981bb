"""The doctor: each thing that can be wrong is named, with what to do; the exit code says so too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone

from ml.imaging.sandbox.policy import Confinement
from portal.backups.models import Backup
from portal.config.settings.base import STORAGES_PRODUCTION
from portal.core.tasks import REGISTRY, job_task
from portal.embeddings.selectors.index_files.snapshots import IndexState
from portal.jobs.models import Job, WorkerHeartbeat
from portal.jobs.selectors.jobs import REAPER_QUEUES, workers_alive
from portal.jobs.services import job_submit
from portal.jobs.worker import heartbeat
from portal.labs.models import Lab
from portal.operations import doctor
from portal.operations.doctor import machine, pages, running
from portal.operations.doctor.findings import DoctorFinding, error, ok, warning
from tests.portal.operations.doctor.support import only

pytestmark = pytest.mark.django_db
Usage = type("Usage", (), {})


# --- machine ---------------------------------------------------------------------------------


def test_storage_is_checked_for_space_and_write_access(
    storage: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage(free: int) -> Callable[[Path], Any]:
        result = Usage()
        result.free, result.total = free, 2**40
        return lambda _: result

    monkeypatch.setattr(machine.shutil, "disk_usage", usage(2**39))
    assert only(machine.storage()).level == "ok"
    monkeypatch.setattr(machine.shutil, "disk_usage", usage(2**30))
    assert only(machine.storage()).level == "warning"
    file = storage / "file"
    file.write_text("not a folder")
    settings.TESSERA_STORAGE = file
    assert only(machine.storage()).level == "error"


def test_storage_of_another_database_is_an_error(storage: Path) -> None:
    from portal.archive.storage.files import IDENTITY, the_store

    the_store().write(IDENTITY, json.dumps({"database": "another"}).encode())
    levels = [finding.level for finding in machine.storage()]
    assert levels[-1] == "error"


def test_a_partial_or_missing_sandbox_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        machine, "confinement", lambda: Confinement("landlock", "seccomp", "seccomp")
    )
    assert only(machine.sandbox()).level == "ok"
    monkeypatch.setattr(machine, "confinement", lambda: Confinement("", "seccomp", "seccomp"))
    finding = only(machine.sandbox())
    assert finding.level == "warning" and "files by nothing" in finding.message

    def dead() -> Confinement:
        raise OSError("no")

    monkeypatch.setattr(machine, "confinement", dead)
    assert only(machine.sandbox()).level == "error"


def test_missing_libraries_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = machine._version
    assert only(machine.libraries()).level == "ok"
    monkeypatch.setattr(machine, "_version", lambda name: "" if "faiss" in name else real(name))
    assert only(machine.libraries()).message == "Not installed: faiss."
    monkeypatch.setattr(machine, "_version", lambda name: "" if name == "torch" else real(name))
    assert only(machine.libraries()).level == "warning"


def test_a_device_or_encoder_that_cannot_be_loaded_is_reported(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TESSERA_ENCODERS = {"histology": "default", "endoscopy": "/nowhere.safetensors"}
    loaded = {
        "device": "cpu",
        "encoders": {"histology": {"version": "4.0"}, "endoscopy": {"error": "no such file"}},
    }
    monkeypatch.setattr(machine, "_load_models", lambda: loaded)
    assert [finding.level for finding in machine.models()] == ["ok", "ok", "error"]
    assert "TESSERA_ENCODER_ENDOSCOPY" in machine.models()[2].remedy

    def fails() -> dict[str, Any]:
        trace = "Traceback:\n  line 1\nDeviceError: there is no GPU.\n"
        raise subprocess.CalledProcessError(1, "python", stderr=trace)

    monkeypatch.setattr(machine, "_load_models", fails)
    check = only(machine.models())
    assert check.level == "error" and "there is no GPU" in check.message


@pytest.mark.slow
@pytest.mark.endurance
def test_the_default_encoders_load_in_another_process(settings: Any) -> None:
    settings.TESSERA_ENCODERS = {"histology": "default", "endoscopy": "no-such-encoder"}
    loaded = machine._load_models()
    assert loaded["device"] and "version" in loaded["encoders"]["histology"]
    assert "no-such-encoder" in loaded["encoders"]["endoscopy"]["error"]


# --- pages -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_missing_or_outdated_styles_are_reported(settings: Any, tmp_path: Path) -> None:
    settings.STATICFILES_DIRS = [tmp_path / "dist"]
    settings.STATIC_ROOT = tmp_path / "root"
    (tmp_path / "src").mkdir()
    (tmp_path / "dist").mkdir()
    (tmp_path / "src" / "app.ts").write_text("let one = 1")
    assert "not built" in only(pages.front_end()).message
    script = tmp_path / "dist" / "app.js"
    script.write_text("let one=1")
    assert only(pages.front_end()).level == "ok"
    os.utime(script, (1, 1))
    assert "have changed since the build" in only(pages.front_end()).message
    os.utime(script)
    settings.STORAGES = STORAGES_PRODUCTION  # a server shows what was collected
    assert "not collected" in only(pages.front_end()).message
    assert "collectstatic" in pages.front_end_problem()
    call_command("collectstatic", interactive=False, verbosity=0)
    assert only(pages.front_end()).level == "ok" and not pages.front_end_problem()
    script.write_text("let two=2")
    assert "another build" in only(pages.front_end()).message


# --- running ---------------------------------------------------------------------------------


def test_debug_pages_and_a_known_key_are_reported(settings: Any) -> None:
    settings.SECRET_KEY = "a1b2c3d4e5" * 6
    assert [finding.level for finding in running.settings_are_safe()] == ["ok", "ok"]
    settings.SECRET_KEY = "development-only-" + "x" * 60
    assert only(running.settings_are_safe(), "secret key").level == "error"
    settings.SECRET_KEY = "short"
    assert only(running.settings_are_safe(), "secret key").level == "error"
    settings.DEBUG = True
    assert only(running.settings_are_safe(), "debug").level == "warning"


def test_a_queue_without_a_worker_is_named() -> None:
    heartbeat.write_heartbeat("cpu", "default")
    finding = only(running.workers())
    assert (
        finding.level == "error" and "gpu" in finding.message and "default" not in finding.message
    )
    heartbeat.write_heartbeat("gpu", "gpu")
    assert only(running.workers()).level == "ok"
    WorkerHeartbeat.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    assert "default and gpu" in only(running.workers()).message


def test_a_silent_reaper_is_reported_and_does_not_count_as_a_worker() -> None:
    assert only(running.beat()).level == "error"
    heartbeat.write_heartbeat("reaper", REAPER_QUEUES)
    assert only(running.beat()).level == "ok"
    assert not workers_alive().exists()


@pytest.fixture
def kind() -> Iterator[str]:
    job_task("waits")(lambda context: None)
    yield "waits"
    REGISTRY.pop("waits", None)


def test_jobs_that_wait_long_or_have_an_unknown_kind_are_reported(lab: Lab, kind: str) -> None:
    assert only(running.queue()).level == "ok"
    job = job_submit(kind=kind, args={}, lab=lab, user=None)
    assert only(running.queue()).level == "ok"
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=3))
    finding = only(running.queue())
    assert finding.level == "warning" and "3.0 h" in finding.message
    REGISTRY.pop(kind)
    assert "does not know: waits" in running.queue()[0].message


def test_an_index_without_the_latest_embeddings_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert only(running.index()).level == "ok"
    state = IndexState("roi-default 4.0", 10.0, 50_000)
    monkeypatch.setattr(running, "index_states", lambda: [state])
    finding = only(running.index())
    assert finding.level == "warning" and "50000" in finding.message


def test_a_missing_or_old_backup_is_reported() -> None:
    assert only(running.backup()).message == "There is no backup."
    for hours, level in ((30, "error"), (1, "ok")):
        taken_at = timezone.now() - timedelta(hours=hours)
        Backup.objects.create(destination="/backup", name=f"{hours}", taken_at=taken_at)
        assert only(running.backup()).level == level
    Backup.objects.update(gone_at=timezone.now())
    assert only(running.backup()).level == "error"


def test_an_unreachable_database_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("no")

    monkeypatch.setattr(running, "workers", away)
    assert running.of_database() == []


# --- the command -----------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.mark.parametrize(
    ("findings", "code", "strict"),
    [
        ([ok("a", "Well.")], 0, 0),
        ([ok("a", "Well."), warning("b", "Nearly.", "Do this.")], 0, 1),
        ([error("c", "Wrong.", "Do that.")], 1, 1),
    ],
)
def test_the_exit_code_depends_on_the_findings(
    monkeypatch: pytest.MonkeyPatch, findings: list[DoctorFinding], code: int, strict: int
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda: findings,))
    assert run()[0] == code
    assert run("--strict")[0] == strict


def test_the_doctor_prints_lines_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [ok("a", "Well."), error("c", "Wrong.", "Do that.")]
    monkeypatch.setattr(doctor, "CHECKS", (lambda: findings,))
    assert run()[1].splitlines() == ["ok      a: Well.", "ERROR   c: Wrong. Do that."]
    assert json.loads(run("--json")[1])[1] == {
        "part": "c",
        "level": "error",
        "message": "Wrong.",
        "remedy": "Do that.",
    }


@pytest.mark.slow
@pytest.mark.endurance
def test_problems_of_a_fresh_installation_are_reported(tmp_path: Path) -> None:
    """A real process on an empty database: it ends with findings, not with a trace."""
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "TESSERA_STORAGE": str(tmp_path / "storage"),
        "TESSERA_BROKER_FOLDER": str(tmp_path / "broker"),
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        cwd=Path(__file__).resolve().parents[4],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    wrong = {load["part"] for load in json.loads(done.stdout) if load["level"] == "error"}
    assert "migrations" in wrong
