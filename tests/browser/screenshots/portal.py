"""The portal that is photographed: the demo's, with a crowd, an empty lab and a broken file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.polling import wait_until
from tests.ports import HOST, free_port
from tests.processes import wait_until_served

ROOT = Path(__file__).resolve().parents[3]
START_S = 300.0  # until the portal answers
MAP_S = 300.0  # until the worker has drawn the map of all regions
CROWD = 10_000
NUCLEUS_PX = (6.0, 14.0)


@dataclass
class Portal:
    """Address, user and named objects of a portal."""

    base: str
    sessions: dict[str, str] = field(default_factory=dict)
    canvases: dict[str, str] = field(default_factory=dict)
    cases: dict[str, str] = field(default_factory=dict)
    mosaic: str = ""
    roi: str = ""


@contextmanager
def served(folder: Path) -> Iterator[Portal]:
    """The demo in this folder, made where it is not there yet; ends with the block."""
    env = _environment(folder)
    made = folder / "made"
    if not made.exists():
        demo = [sys.executable, "manage.py", "demo", "--exit"]
        subprocess.run(demo, cwd=ROOT, env=env, check=True)
        made.touch()
    port = free_port()
    with (folder / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(port)],
            cwd=ROOT,
            env=env,
            stdout=log,
            stderr=log,
        )
        try:
            base = f"http://{HOST}:{port}"
            wait_until_served(server, f"{base}/healthz", within_s=START_S)
            yield _filled(base, env)
        finally:
            server.terminate()
            server.wait()


def _environment(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    return {name: value for name, value in os.environ.items() if name != "TESSERA_DATA"} | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "TESSERA_STORAGE": f"{folder}/storage",
        "TESSERA_BROKER_FOLDER": f"{folder}/broker",
    }


def _filled(base: str, env: dict[str, str]) -> Portal:
    """Add what the demo lacks, through the services, and name everything."""
    os.environ.update(env)
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # playwright's loop runs in this thread
    import django

    django.setup()
    from portal.annotations.models import Roi
    from portal.archive.models import Canvas, Case
    from portal.labs.models import Lab, User
    from portal.mosaics.models import Mosaic

    portal = Portal(base)
    lab = Lab.objects.get(slug="demo-lab")
    people = {
        name: User.objects.get(email=f"{name}@demo.example")
        for name in ("pathologist", "endoscopist", "manager")
    }
    people["newcomer"] = _newcomer()
    portal.sessions = {name: _session(user) for name, user in people.items()}
    portal.cases = {case.accession: str(case.pk) for case in Case.objects.filter(lab=lab)}
    mosaic = Mosaic.objects.filter(lab=lab, canvas__isnull=False).order_by("created_at").first()
    if mosaic is None or mosaic.canvas is None or mosaic.video.canvas is None:
        raise RuntimeError("the demo made no mosaic")
    portal.mosaic = str(mosaic.pk)
    made = {"mosaic": mosaic.canvas, "video": mosaic.video.canvas}
    for accession in ("D-1001", "D-1002", "D-1003"):
        made[accession] = Canvas.objects.get(case__accession=accession, case__lab=lab)
    portal.canvases = {name: str(canvas.pk) for name, canvas in made.items()}
    first = Roi.objects.live().filter(canvas=made["D-1001"]).order_by("name").first()
    if first is None:
        raise RuntimeError("the demo drew nothing")
    portal.roi = str(first.pk)
    crowd(made["D-1003"], people["pathologist"], CROWD)
    _map(lab, people["manager"])
    return portal


def _newcomer() -> Any:
    from portal.labs.models import Role, User
    from portal.labs.services.accounts import user_create
    from portal.labs.services.labs import lab_create
    from portal.labs.services.members import member_add

    email = "newcomer@empty.example"
    known = User.objects.filter(email=email).first()
    if known is not None:
        return known
    user = user_create(email, password="a long enough password", full_name="Dr Nora Neu")
    member_add(lab_create("New lab", slug="new-lab"), user=user, role=Role.MANAGER)
    return user


def _session(user: Any) -> str:
    from tests.bench.portal import session_of

    return session_of(user)


def crowd(canvas: Any, user: Any, count: int) -> None:
    """Add outlines of the size of nuclei, of two labels, up to a number."""
    from portal.annotations.models import Label, Roi

    if Roi.objects.live().filter(canvas=canvas).count() >= count:
        return
    labels = list(Label.objects.filter(lab=canvas.lab).order_by("name")[:2])
    random = np.random.default_rng(7)
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    rows = []
    for n in range(count):
        size = random.uniform(*NUCLEUS_PX)
        x, y = random.uniform(0.05, 0.95, 2) * (canvas.width_px, canvas.height_px)
        ring = np.stack([x + size * np.cos(turn), y + 0.7 * size * np.sin(turn)], 1).round(2)
        (left, top), (right, bottom) = ring.min(0).tolist(), ring.max(0).tolist()
        points = ring.tolist()
        rows.append(
            Roi(
                lab_id=canvas.lab_id,
                canvas=canvas,
                created_by=user,
                label=labels[n % len(labels)],
                geometry={"type": "Polygon", "coordinates": [[*points, points[0]]]},
                **{"left": left, "top": top, "right": right, "bottom": bottom},
                **{"centroid_x": round(x, 2), "centroid_y": round(y, 2)},
                area_px=round(float(2.1 * size**2), 2),
            )
        )
    Roi.objects.bulk_create(rows, batch_size=1000)


def _map(lab: Any, user: Any) -> None:
    """The map that Browse shows; the worker draws it."""
    from portal.archive.models import Modality
    from portal.explore.models import RegionMap
    from portal.explore.services.maps import map_draw_submit

    if RegionMap.objects.filter(lab=lab).exists():
        return
    job = map_draw_submit(lab=lab, kind=Modality.HISTOLOGY, user=user)

    def has_ended() -> bool:
        job.refresh_from_db()
        return bool(job.has_ended)

    wait_until(has_ended, "the map", within_s=MAP_S, every_s=0.5)
