"""Tiles over HTTP: the fast path (permission included) against IIPImage and DeepZoomGenerator."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, session_of
from tests.polling import wait_until
from tests.ports import HOST, free_port

CLIENTS, SECONDS = 8, 5
IIPSRV = Path("/usr/lib/iipimage-server/iipsrv.fcgi")


def tiles_over_http(portal: BenchPortal) -> Section:
    """Requests a second of level-0 tiles at 8 clients, with one server at a time on the machine."""
    section = Section(
        "Tiles over HTTP",
        f"Requests a second of level-0 tiles of the sample slide at {CLIENTS} clients (wrk, "
        f"keep-alive, {SECONDS} s, the same machine), two server processes each. Tessera's figure "
        "includes the permission check. Raw pass-through has none.",
    )
    if shutil.which("wrk") is None:
        section.note += " Not measured: wrk is not installed."
        return section
    ours = _tessera(portal)
    rates = {"raw pass-through behind gunicorn": _alternative(portal, "raw")}
    rates["DeepZoomGenerator behind gunicorn"] = _alternative(portal, "deepzoom")
    if IIPSRV.exists() and shutil.which("lighttpd"):
        rates["IIPImage behind lighttpd, every tile in its cache"] = _iipimage(portal, cache_mb=64)
        rates["IIPImage behind lighttpd, its cache off"] = _iipimage(portal, cache_mb=0)
    else:
        section.note += " IIPImage not measured: iipimage-server and lighttpd are not installed."
    for name, rate in rates.items():
        budget = "at least 3x" if name.startswith("IIP") else ""
        section.rows.append(Row("Tessera", ours, "tiles/s", name, ours / rate, budget))
    return section


def _places(portal: BenchPortal) -> list[tuple[int, int]]:
    level = portal.canvas.levels[0]
    columns = level["width_px"] // level["tile_width_px"]
    rows = level["height_px"] // level["tile_height_px"]
    return [(x, y) for y in range(rows) for x in range(columns)]


def _tessera(portal: BenchPortal) -> float:
    from portal.archive.serializers.canvases import tile_url

    finest = len(portal.canvas.levels) - 1
    template = tile_url(portal.canvas)
    paths = [template.format(z=finest, x=x, y=y) for x, y in _places(portal)]
    port = free_port()
    cookie = f"sessionid={session_of(portal.user)}"
    command = [sys.executable, "manage.py", "serve", "--web-only", "--port", str(port)]
    with _server(command, portal.env, port, paths[0], cookie=cookie):
        return _load(portal.folder, port, paths, cookie=cookie)


def _alternative(portal: BenchPortal, way: str) -> float:
    port = free_port()
    command = [
        *(sys.executable, "-m", "gunicorn", "tests.bench.deepzoom_wsgi:application"),
        *("--bind", f"{HOST}:{port}", "--worker-class", "gthread", "--reuse-port"),
        *("--workers", "2", "--threads", "4", "--keep-alive", "30", "--log-level", "warning"),
    ]
    paths = [f"/{way}/{x}/{y}" for x, y in _places(portal)]
    env = portal.env | {"TESSERA_BENCH_SLIDE": str(portal.slide_path)}
    with _server(command, env, port, paths[0]):
        return _load(portal.folder, port, paths)


def _iipimage(portal: BenchPortal, *, cache_mb: int) -> float:
    port = free_port()
    config = portal.folder / "lighttpd.conf"
    config.write_text(
        f'server.document-root = "{portal.folder}"\n'
        f'server.bind = "{HOST}"\nserver.port = {port}\n'
        'server.modules = ("mod_fastcgi")\nserver.max-keep-alive-requests = 100000\n'
        f'fastcgi.server = ("/iip" => (("socket" => "{portal.folder}/iip.sock", '
        f'"check-local" => "disable", "min-procs" => 2, "max-procs" => 2, '
        f'"bin-path" => "{IIPSRV}", "bin-environment" => ("LOGFILE" => "/dev/null", '
        f'"MAX_IMAGE_CACHE_SIZE" => "{cache_mb}", "VERBOSITY" => "0"))))\n'
    )
    largest = max(level["width_px"] for level in portal.canvas.levels)
    levels = max(largest, portal.canvas.levels[0]["height_px"]) - 1
    zoom = levels.bit_length()
    paths = [
        f"/iip?DeepZoom={portal.slide_path}_files/{zoom}/{x}_{y}.jpg" for x, y in _places(portal)
    ]
    with _server(["lighttpd", "-D", "-f", str(config)], {}, port, paths[0]):
        return _load(portal.folder, port, paths)


@contextlib.contextmanager
def _server(
    command: list[str], env: dict[str, str], port: int, path: str, *, cookie: str = ""
) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        env=os.environ | env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(urllib.request.Request(f"http://{HOST}:{port}{path}", headers={"Cookie": cookie}))
        yield
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(request: urllib.request.Request) -> None:
    def body() -> bytes:
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=2) as answer:
            return bytes(answer.read())
        return b""

    data = wait_until(body, request.full_url, within_s=60)
    if data[:2] != b"\xff\xd8":
        raise RuntimeError(f"{request.full_url} answered no JPEG: {data[:80]!r}")


def _load(folder: Path, port: int, paths: list[str], *, cookie: str = "") -> float:
    """Requests a second by wrk, all answers 200."""
    script = folder / "paths.lua"
    listed = ",\n".join(f'"{path}"' for path in paths)
    script.write_text(
        f"local paths = {{{listed}}}\nlocal i = 0\n"
        "request = function() i = i % #paths + 1; return wrk.format('GET', paths[i]) end\n"
    )
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{SECONDS}s", "-s", str(script)]
    command += ["-H", f"Cookie: {cookie}"]
    url = f"http://{HOST}:{port}/"
    subprocess.run([*command[:3], "-d1s", *command[4:], url], check=True, capture_output=True)
    output = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output:
        raise RuntimeError(output)
    match = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if match is None:
        raise RuntimeError(output)
    return float(match[1])


if __name__ == "__main__":
    sys.exit("run: make bench")
