"""The image, built and booted for real: every role, its health check, and a slide through Caddy.

Runs where ``TESSERA_BUILDAH`` names a folder with 15 GB of room (see ``buildah.sh``), as root.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
import tifffile

from tests.docker.image import ROOT, Image, compose
from tests.polling import wait_until
from tests.ports import free_port
from tests.services import own_database, own_redis

pytestmark = [
    pytest.mark.slow,
    pytest.mark.services,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not os.environ.get("TESSERA_BUILDAH"), reason="TESSERA_BUILDAH names no folder to build in"
    ),
]
EMAIL, PASSWORD = "maya@lab.example", "correct horse battery staple"
CADDY = shutil.which("caddy") or ""


@dataclass
class Site:
    """The portal behind its proxy."""

    image: Image
    url: str
    port: int
    authority: Path
    logs: Path

    def log(self, service: str) -> str:
        """Log of a role."""
        return (self.logs / f"{service}.log").read_text(errors="replace")[-4000:]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Migrated, with a lab, and all roles and the proxy running."""
    folder = Path(os.environ["TESSERA_BUILDAH"]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    logs, data = tmp_path_factory.mktemp("logs"), tmp_path_factory.mktemp("data")
    port, https = free_port(), free_port()
    url = f"https://localhost:{https}"
    values = {
        "TESSERA_SECRET_KEY": "a-key-of-this-test-alone-0123456789-abcdefghijklmnop",
        "TESSERA_ALLOWED_HOSTS": "localhost",
        "TESSERA_CSRF_TRUSTED_ORIGINS": url,
        "POSTGRES_PASSWORD": "unused",
    }
    with own_database() as database, own_redis() as (broker, _):
        lent = {"TESSERA_DATABASE_URL": database, "TESSERA_BROKER_URL": broker}
        image = Image.built(folder, data, values=values, lent=lent)
        try:
            migrated = image.run("migrate", "migrate")
            assert migrated.returncode == 0, migrated.stderr
            image.lent["TESSERA_SETUP_PASSWORD"] = PASSWORD
            made = image.run("migrate", "setup_lab", "--lab", "North", "--manager", EMAIL)
            assert made.returncode == 0, made.stderr
            del image.lent["TESSERA_SETUP_PASSWORD"]
            image.start("web", logs / "web.log", "--port", str(port))
            image.start("worker", logs / "worker.log")
            image.start("beat", logs / "beat.log")
            proxy, authority = _proxy(logs, https=https, upstream=port)
            try:
                booted = Site(image, url, port, authority, logs)
                _until(lambda: _is_ready(booted), seconds=120, site=booted)
                yield booted
            finally:
                proxy.terminate()
                proxy.wait(20)
        finally:
            image.drop()


def test_the_root_is_read_only_and_the_user_has_no_power(site: Site) -> None:
    script = """
import os, pathlib
status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
print(os.getuid(), status["CapEff"].strip(), status["CapBnd"].strip(), status["NoNewPrivs"].strip())
for place in ("/app", "/opt/venv", "/etc", "/home/tessera"):
    try:
        (pathlib.Path(place) / "probe").touch()
        print("written", place)
    except OSError:
        pass
for place in ("/tmp", "/data"):
    (pathlib.Path(place) / "probe").touch()
    (pathlib.Path(place) / "probe").unlink()
"""
    done = site.image.exec("web", ["python", "-c", script])
    assert done.stdout.split("\n") == [f"10001 {'0' * 16} {'0' * 16} 1", ""], done.stderr


def test_every_role_passes_its_health_check(site: Site) -> None:
    for service in ("web", "worker", "beat"):
        test = compose()["services"][service]["healthcheck"]["test"]
        command = [word.replace("8000", str(site.port)) for word in test[1:]]

        def healthy(service: str = service, command: list[str] = command) -> bool:
            return site.image.exec(service, command).returncode == 0

        _until(healthy, seconds=60, site=site, what=service)


def test_a_role_that_is_not_there_is_not_healthy(site: Site) -> None:
    other = site.image.run("gpu-worker", "alive")  # a container in which nothing runs
    assert other.returncode != 0
    assert "Nothing on this machine has reported lately" in other.stderr


def test_the_doctor_reports_no_error_in_the_image(site: Site) -> None:
    done = site.image.exec("worker", ["python", "manage.py", "doctor", "--json"])
    errors = [load for load in json.loads(done.stdout) if load["level"] == "error"]
    assert [error["part"] for error in errors] == ["backup"], done.stdout  # nobody made one yet


def test_the_proxy_speaks_tls_and_the_portal_sends_its_headers(site: Site) -> None:
    answer = requests.get(f"{site.url}/accounts/login/", verify=site.authority, timeout=20)
    assert answer.status_code == 200
    headers = answer.headers
    assert headers["Strict-Transport-Security"].startswith("max-age=31536000")
    assert "default-src" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in headers["Cache-Control"]
    host, port = site.url.removeprefix("https://").split(":")
    with pytest.raises(ssl.SSLError):  # nothing older than 1.2
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(site.authority)
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection((host, int(port)), 5) as plain:
            old.wrap_socket(plain, server_hostname=host)


def test_static_files_come_through_and_are_the_built_ones(site: Site) -> None:
    page = requests.get(f"{site.url}/accounts/login/", verify=site.authority, timeout=20).text
    paths = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert paths
    for path in paths:
        answer = requests.get(f"{site.url}{path}", verify=site.authority, timeout=20)
        assert answer.status_code == 200 and answer.content, path


def test_a_slide_uploaded_in_a_browser_has_tiles(site: Site) -> None:
    with _signed_in(site) as person:
        case = person.post(
            f"{site.url}/api/v1/cases/", json={"accession": "B-1", "patient_key": "p1"}, timeout=20
        )
        assert case.status_code == 201, case.text
        data = _slide()
        assert len(data) > 5 * 2**20  # more than the proxy buffers
        sent = person.post(
            f"{site.url}/api/v1/slides/",
            data={"case": case.json()["id"]},
            files={"file": ("boot.tif", data, "image/tiff")},
            timeout=60,
        )
        assert sent.status_code == 202, sent.text
        slide = f"{site.url}/api/v1/slides/{sent.json()['id']}/"
        _until(
            lambda: person.get(slide, timeout=20).json()["state"] != "preparing",
            seconds=120,
            site=site,
            what="the slide",
        )
        body = person.get(slide, timeout=20).json()
        assert body["state"] == "ready", (body, site.log("worker"))
        canvas = person.get(f"{site.url}/api/v1/canvases/{body['canvas']}/", timeout=20).json()
        tile = canvas["tile_url"].format(z=len(canvas["levels"]) - 1, x=0, y=0)
        answer = person.get(f"{site.url}{tile}", timeout=20)
        assert answer.status_code == 200 and answer.content[:3] == b"\xff\xd8\xff", answer.headers
        assert answer.headers["ETag"]
    out = requests.get(f"{site.url}{tile}", verify=site.authority, timeout=20)
    assert out.status_code in (401, 403, 404)


def test_a_region_is_embedded_by_the_worker_of_the_image(site: Site) -> None:
    with _signed_in(site) as person:
        slides = person.get(f"{site.url}/api/v1/slides/", timeout=20).json()["results"]
        ring = [[200, 200], [900, 200], [900, 900], [200, 900], [200, 200]]
        made = person.post(
            f"{site.url}/api/v1/rois/",
            json={
                "canvas": slides[0]["canvas"],
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            },
            timeout=20,
        )
        assert made.status_code == 201, made.text

        def embedded() -> bool:
            jobs = person.get(f"{site.url}/api/v1/jobs/?kind=roi_embed", timeout=20).json()
            states = {job["state"] for job in jobs["results"]}
            assert not states & {"failed", "cancelled"}, jobs
            return states == {"succeeded"}

        _until(embedded, seconds=240, site=site, what="the embedding")


def test_every_role_stops_on_a_signal(site: Site) -> None:
    for service in ("beat", "worker", "web"):
        code = site.image.stop(service)
        assert code in (0, 143), (service, code, site.log(service))


def _proxy(logs: Path, *, https: int, upstream: int) -> tuple[subprocess.Popen[bytes], Path]:
    """Caddy with the committed file; only its ports are this test's own."""
    if not CADDY:
        pytest.fail("caddy is not installed")
    text = (ROOT / "docker" / "Caddyfile").read_text()
    text = text.replace("web:8000", f"127.0.0.1:{upstream}")
    text = text.replace("admin off", f"admin off\n\tskip_install_trust\n\thttp_port {free_port()}")
    if "v2.6" in _version():  # Debian's: the directive's older name
        text = text.replace("request_buffers 1MiB", "buffer_requests\n\t\tmax_buffer_size 1MiB")
    file = logs / "Caddyfile"
    file.write_text(text)
    home = logs / "caddy"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "TESSERA_SITE": f"https://localhost:{https}",
    }
    with (logs / "proxy.log").open("wb") as output:
        process = subprocess.Popen(
            [CADDY, "run", "--adapter", "caddyfile", "--config", file],
            env=env,
            stdout=output,
            stderr=output,
        )
    return process, home / "caddy" / "pki" / "authorities" / "local" / "root.crt"


def _version() -> str:
    done = subprocess.run([CADDY, "version"], capture_output=True, text=True, check=True)
    return f"v{done.stdout.strip().lstrip('v')}"


def _is_ready(site: Site) -> bool:
    try:
        answer = requests.get(f"{site.url}/readyz", verify=site.authority, timeout=5)
    except (requests.RequestException, OSError):
        return False
    return answer.status_code == 200


def _signed_in(site: Site) -> requests.Session:
    person = requests.Session()
    person.trust_env = False  # a bundle named there would replace this authority
    person.verify = str(site.authority)
    login = f"{site.url}/accounts/login/"
    page = person.get(login, timeout=20).text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    form = {"login": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    answer = person.post(login, data=form, headers={"Referer": login}, timeout=20)
    assert answer.ok and answer.url.endswith("/cases/"), (answer.url, answer.status_code)
    cookies = {cookie.name: cookie for cookie in person.cookies}
    assert cookies["__Host-sessionid"].secure
    person.headers["Referer"] = site.url
    person.headers["X-CSRFToken"] = cookies["csrftoken"].value or ""
    return person


def _slide() -> bytes:
    rng = np.random.default_rng(3)
    coarse = rng.integers(60, 230, (96, 96, 3), np.uint8)
    image = np.kron(coarse, np.ones((24, 24, 1), np.uint8))
    image = np.clip(image + rng.integers(-20, 20, image.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        options: dict[str, Any] = {"photometric": "rgb", "tile": (256, 256)}
        options |= {"resolution": (20_000, 20_000), "resolutionunit": "CENTIMETER"}
        writer.write(image, **options)
        writer.write(image[::2, ::2], subfiletype=1, **options)
    return file.getvalue()


def _until(ready: Callable[[], bool], *, seconds: float, site: Site, what: str = "it") -> None:
    def logs() -> dict[str, str]:
        return {
            path.name: path.read_text(errors="replace")[-3000:] for path in site.logs.glob("*.log")
        }

    wait_until(ready, what, within_s=seconds, every_s=0.5, detail=logs)
