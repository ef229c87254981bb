"""A whole installation moved from SQLite to PostgreSQL, to another folder, to a bucket and back."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from portal.core.database.locks import _key
from tests import services
from tests.databases import migrate_server, migrated
from tests.polling import wait_until

ROOT = Path(__file__).resolve().parents[3]
FILL = """
import hashlib, os, uuid
import django
django.setup()
from portal.annotations.models import Label, LabelSet, Roi
from portal.archive.storage import files as storage
from portal.archive.models import Asset, Canvas, Case, Slide, Upload
from portal.archive.services.identity import identity_mark
from portal.core.models import Event
from portal.core.storage_layout import Place
from portal.labs.models import Lab, Membership, User
from portal.embeddings.models import Embedding, Encoder

lab = Lab.objects.create(name="Nord", slug="nord")
user = User.objects.create_user("m@nord.example", "correct horse battery", full_name="Müller")
Membership.objects.create(user=user, lab=lab, role="manager")
case = Case.objects.create(lab=lab, accession="Ä-1", tags=["a", 'b"c'], created_by=user)
labels = LabelSet.objects.create(lab=lab, name="L", is_default=True)
parent = Label.objects.create(lab=lab, label_set=labels, name="x", color="#ff0000", position=1)
Label.objects.create(
    lab=lab, label_set=labels, name="y", color="#ff0000", position=2, parent=parent
)
encoder = Encoder.objects.create(name="e", version="1", config_hash="1" * 64, dim=4)
count = int(os.environ["ROWS"])
for n in range(5):
    content = os.urandom(20000 + n)
    sha256 = hashlib.sha256(content).hexdigest()
    path = storage.incoming_path("made")
    path.write_bytes(content)
    storage.the_store().put(path, storage.asset_name(lab.pk, sha256))
    asset = Asset.objects.create(lab=lab, sha256=sha256, size_bytes=len(content))
    canvas = Canvas.objects.create(
        lab=lab, case=case, kind="slide", name="c", width_px=9, height_px=9, mpp_x=0.1, mpp_y=1e22
    )
    slide = Slide.objects.create(lab=lab, case=case, asset=asset, name=f"s{n}", canvas=canvas)
    folder = storage.derived_folder(slide.pk)
    folder.mkdir(parents=True)
    (folder / "thumbnail.jpg").write_bytes(os.urandom(3000))
for n in range(count):
    roi = Roi(lab=lab, canvas=canvas, geometry={"type": "Polygon", "n": [1.0, 1e22, -0.0, 0.1 * n]},
        left=n, top=0.5, right=1, bottom=1, centroid_x=0.1, centroid_y=0.1, area_px=1,
        label=parent, name=f"Röi {n}", foreign={"b": [1, 2.5], "a": None}, properties={})
    roi.save()
    Embedding.objects.create(lab=lab, encoder=encoder, roi=roi, canvas=canvas, roi_version=1,
        vector=os.urandom(16), patch_count=1, seconds=0.25)
    Event.objects.create(name="roi.saved", lab_id=lab.pk, payload={"roi": str(roi.pk)})
identity_mark()
for place in (Place.CACHE, Place.JOBS):
    path = place.path(uuid.uuid4()) / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"made again")
partial = Upload.objects.create(lab=lab, case=case, filename="p", size_bytes=9, received_bytes=4)
storage.incoming_path(str(partial.pk)).write_bytes(b"1234")
"""
LOOK = """
import json, django
django.setup()
from django.apps import apps
from portal.annotations.models import Roi
from portal.core.models import Event
from portal.archive.models import Slide, Upload
from portal.archive.storage import files as storage
from portal.archive.services.identity import identity_problem
from portal.audit.append_only import triggers_missing
from portal.labs.models import Lab, User
models = apps.get_models(include_auto_created=True)
rows = {model._meta.db_table: model._base_manager.count() for model in models}
for slide in Slide.objects.select_related("asset"):
    path = storage.asset_path(slide.lab_id, slide.asset.sha256)
    assert storage.file_sha256(path) == slide.asset.sha256
    assert (storage.derived_folder(slide.pk) / "thumbnail.jpg").stat().st_size == 3000
roi = Roi.objects.order_by("left").last()
upload = Upload.objects.get(filename="p")
found = {
    "rows": rows,
    "roi": [str(roi.updated_at), roi.name, roi.label.parent_id, roi.geometry["n"][3]],
    "password": User.objects.get(email="m@nord.example").check_password("correct horse battery"),
    "identity": identity_problem(),
    "triggers": triggers_missing(),
    "transfer": storage.incoming_path(str(upload.pk)).read_text(),
}
Event.objects.create(name="after", lab_id=Lab.objects.get().pk, payload={})
print(json.dumps(found))
"""
MOVE_WITHOUT_ITS_END = """
import sys
import django
django.setup()
from django.core.management import call_command
from portal.backups.services import moving
rows_move = moving._rows_move
def stop_after(progress):
    rows_move(progress)
    raise OSError("stopped")
moving._rows_move = stop_after
call_command("move", sys.argv[1])
"""
pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(900)]


class Installation:
    """A portal's settings, in which commands are run."""

    def __init__(self, folder: Path, url: str, **more: str) -> None:
        self.folder, self.url = folder, url
        self.settings = {
            "TESSERA_DATABASE_URL": url,
            "TESSERA_STORAGE": str(folder),
            **more,
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{k: v for k, v in os.environ.items() if not k.startswith("TESSERA_")},
            "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
            "TESSERA_BROKER_URL": "memory://",
            **self.settings,
        }

    def python(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
        )

    def file(self, path: Path) -> Path:
        path.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        return path

    def look(self) -> Any:
        done = self.python("-c", LOOK)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def state(self) -> Mapping[str, str]:
        """Every file by its hash; the database's rows by their text."""
        hashes = {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
        with sqlite3.connect(self.url.removeprefix("sqlite:///")) as database:
            dump = "\n".join(database.iterdump())
        return hashes | {"database": hashlib.sha256(dump.encode()).hexdigest()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("source")
    made = Installation(folder / "storage", migrated(folder / "tessera.sqlite3"))
    done = made.python("-c", FILL, ROWS="400")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def server() -> Iterator[str]:
    with services.own_database() as url:
        yield url


def move(source: Installation, target: Installation, tmp_path: Path) -> str:
    done = source.python("manage.py", "move", str(target.file(tmp_path / "new.env")))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.endurance
def test_a_killed_move_continues_and_loses_nothing(
    source: Installation, server: str, tmp_path: Path
) -> None:
    target = Installation(tmp_path / "new", server)
    settings = target.file(tmp_path / "new.env")
    before, counts = source.state(), source.look()
    before = source.state()
    rng = random.Random(4)
    started = time.monotonic()
    assert source.python("manage.py", "check").returncode == 0
    starts_s = time.monotonic() - started
    for _ in range(2):
        command = [sys.executable, "manage.py", "move", str(settings)]
        running = subprocess.Popen(
            command,
            cwd=ROOT,
            env=source.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output = running.communicate(timeout=starts_s * rng.uniform(0.8, 3.0))[1]
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.communicate()
            continue
        # Killed between its last statement and its exit, the move before was complete.
        assert running.returncode == 0 or "not empty" in output, output
        break
    else:
        move(source, target, tmp_path)
    assert source.state() == before
    moved = target.look()
    expected = counts["rows"] | {"core_event": counts["rows"]["core_event"] + 1}
    assert moved["rows"] == expected
    for name in ("roi", "password", "identity", "triggers", "transfer"):
        assert moved[name] == counts[name], name
    assert not list((tmp_path / "new").glob("move-under-way"))
    assert not (tmp_path / "new" / "cache").exists()
    again = source.python("manage.py", "move", str(settings))
    assert again.returncode != 0 and "not empty" in again.stderr


@pytest.mark.endurance
def test_a_move_waits_for_the_session_of_a_killed_one(
    source: Installation, server: str, tmp_path: Path
) -> None:
    target = Installation(tmp_path / "new", server)
    command = [sys.executable, "manage.py", "move", str(target.file(tmp_path / "new.env"))]
    with psycopg.connect(server, autocommit=True) as database:
        database.execute("SELECT pg_advisory_lock(%s)", [_key("move")])
        running = subprocess.Popen(
            command, cwd=ROOT, env=source.environment, stderr=subprocess.PIPE, text=True
        )
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

        def is_waiting() -> bool:
            assert running.poll() is None, running.communicate()[1]
            return database.execute(waiting).fetchone() != (0,)

        wait_until(is_waiting, "the move at its lock", within_s=120)
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert database.execute(tables).fetchone() == (0,)
    assert running.wait(300) == 0, running.communicate()[1]


@pytest.mark.endurance
def test_a_move_that_stopped_after_its_rows_were_written_is_completed(
    source: Installation, server: str, tmp_path: Path
) -> None:
    target = Installation(tmp_path / "new", server)
    settings = target.file(tmp_path / "new.env")
    stopped = source.python("-c", MOVE_WITHOUT_ITS_END, str(settings))
    assert "stopped" in stopped.stderr, stopped.stderr
    move(source, target, tmp_path)
    assert not list((tmp_path / "new").glob("move-under-way"))
    assert target.look()["identity"] == source.look()["identity"]


def test_a_target_of_another_move_is_refused_and_not_changed(
    source: Installation, server: str, tmp_path: Path
) -> None:
    other = Installation(tmp_path / "other", server)
    migrate_server(server)
    with psycopg.connect(server, autocommit=True) as database:
        database.execute(
            "INSERT INTO labs_lab (id, created_at, updated_at, name, slug) "
            "VALUES (gen_random_uuid(), now(), now(), 'Theirs', 'theirs')"
        )
    refused = source.python("manage.py", "move", str(other.file(tmp_path / "a.env")))
    assert refused.returncode != 0 and "labs_lab" in refused.stderr
    full = Installation(tmp_path / "full", f"sqlite:///{tmp_path / 'new.sqlite3'}")
    full.folder.mkdir()
    (full.folder / "theirs").write_text("a file")
    refused = source.python("manage.py", "move", str(full.file(tmp_path / "b.env")))
    assert refused.returncode != 0 and "is not empty" in refused.stderr
    assert [path.name for path in full.folder.iterdir()] == ["theirs"]
    missing = tmp_path / "c.env"
    missing.write_text(f"TESSERA_DATABASE_URL={server}\n")
    refused = source.python("manage.py", "move", str(missing))
    assert refused.returncode != 0 and "TESSERA_STORAGE must be set" in refused.stderr


def test_a_row_that_the_target_refuses_is_named_and_nothing_is_written(
    server: str, tmp_path: Path
) -> None:
    broken = Installation(tmp_path / "storage", migrated(tmp_path / "tessera.sqlite3"))
    assert broken.python("-c", FILL, ROWS="2").returncode == 0
    with sqlite3.connect(tmp_path / "tessera.sqlite3") as database:
        database.execute("UPDATE archive_case SET accession = ?", ["x" * 500])
    target = Installation(tmp_path / "new", server)
    refused = broken.python("manage.py", "move", str(target.file(tmp_path / "new.env")))
    assert refused.returncode != 0 and "archive_case" in refused.stderr, refused.stderr
    with psycopg.connect(server) as database:
        assert database.execute("SELECT count(*) FROM labs_lab").fetchone() == (0,)
    with sqlite3.connect(tmp_path / "tessera.sqlite3") as database:
        database.execute("UPDATE archive_case SET accession = 'mended'")
    move(broken, target, tmp_path)


def test_originals_move_into_a_bucket_and_back_to_a_folder(
    source: Installation, tmp_path: Path
) -> None:
    moto = pytest.importorskip("moto.server")
    before = source.state()
    objects = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    objects.start()
    keys = {
        "TESSERA_STORE": "s3",
        "TESSERA_S3_BUCKET": "moved",
        "TESSERA_S3_ENDPOINT": f"http://127.0.0.1:{objects.get_host_and_port()[1]}",
        "TESSERA_S3_REGION": "us-east-1",
        "TESSERA_S3_ACCESS_KEY": "key",
        "TESSERA_S3_SECRET_KEY": "secret",
    }
    try:
        inside = Installation(tmp_path / "in", f"sqlite:///{tmp_path / 'in.sqlite3'}", **keys)
        assert inside.python("manage.py", "archive_bucket").returncode == 0
        move(source, inside, tmp_path)
        assert not (inside.folder / "assets").exists()
        assert inside.look()["identity"] == ""
        back = Installation(tmp_path / "out", f"sqlite:///{tmp_path / 'out.sqlite3'}")
        move(inside, back, tmp_path)
    finally:
        objects.stop()
    assert back.look()["identity"] == ""
    assert source.state() == before
