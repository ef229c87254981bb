"""Files on their way in: ``python -m tests.bench.uploads [--gib 10] [--slide-gb 2] [--write]``.

A large file goes by tus to the portal as ``manage.py serve`` starts it, in pieces as a browser
sends them, compared with ``cat`` of the same file to the same disk before and after it; the memory
of each process of the portal is sampled every second. Then a slide is sent and prepared, and
regions go in and out by the thousand. Three times the large file has to fit on the disk.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tifffile

from tests.bench import report
from tests.bench.imports import document
from tests.bench.measure import Row, Section, constant_of
from tests.bench.mixed.report import memory_over_time
from tests.bench.mixed.run import ROOT, _person, _serving
from tests.bench.mixed.users import HOST, Person
from tests.bench.portal import BenchPortal, portal_open
from tests.bench.processes import Usage, usage_of
from tests.polling import wait_until
from tests.ports import free_port

TITLE, ROIS = "Uploads", "Regions by the thousand"
NUMBER = 2_000  # of the person: those of other measures may be there already
PACE = ROOT / "static/src/upload/transfer_rate.ts"
BLOCK_BYTES = 64 * 2**20  # of noise, again and again
LOOK_EVERY_S = 1.0
PATIENCE_S = 3_600.0
TILE_PX, TILES = 256, 32  # different ones in the slide
COUNT, SINGLY = 10_000, 200  # regions in large calls, and one by one
TUS, PIECE = {"Tus-Resumable": "1.0.0"}, "application/offset+octet-stream"


class Sender:
    """One connection, as one person."""

    def __init__(self, port: int, person: Person) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_S)
        self._head = {"Cookie": person.cookie, "X-CSRFToken": person.csrf}

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, bytes, Any]:
        """Status, body and headers; a body that is no bytes goes as JSON."""
        sent = body
        if body is not None and not isinstance(body, bytes | memoryview):
            sent = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, sent, self._head | headers)  # type: ignore[arg-type]
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {data[:300]!r}")
        return answer.status, data, answer.headers

    def json(self, path: str) -> Any:
        """Read the JSON at an address."""
        return json.loads(self.ask("GET", path)[1])

    def send(self, path: Path, case: str) -> str:
        """A file in pieces; returns its address."""
        metadata = {"case": case, "filename": path.name}
        meta = ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in metadata.items())
        headers = {"Upload-Length": str(path.stat().st_size), "Upload-Metadata": meta}
        address = self.ask("POST", "/api/v1/uploads/", **TUS, **headers)[2]["Location"]
        place, offset = "/" + address.partition("://")[2].partition("/")[2], 0
        place = place if "://" in address else address
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            content, size = memoryview(mapped), mib_of("FIRST_CHUNK_MIB")
            while offset < len(content):
                began = time.perf_counter()
                head = TUS | {"Upload-Offset": str(offset), "Content-Type": PIECE}
                with content[offset : offset + size] as piece:
                    self.ask("PATCH", place, piece, **head)
                offset = min(offset + size, len(content))
                size = next_piece(size, time.perf_counter() - began)
            content.release()
        return place

    def until(self, path: str, is_over: Callable[[Any], bool]) -> Any:
        """Read the JSON at an address once it is final."""
        bodies: list[Any] = []

        def is_final() -> bool:
            bodies[:] = [self.json(path)]
            return is_over(bodies[0])

        wait_until(is_final, path, within_s=PATIENCE_S, every_s=0.2)
        return bodies[0]


def mib_of(name: str) -> int:
    """A size that the page names, in bytes."""
    return constant_of(PACE, name) * 2**20


def next_piece(size_bytes: int, seconds: float) -> int:
    """Size of the next piece, as in ``nextChunkBytes`` of the page."""
    if seconds < constant_of(PACE, "GROWS_BELOW_S"):
        return min(2 * size_bytes, mib_of("MAX_CHUNK_MIB"))
    if seconds > constant_of(PACE, "SHRINKS_ABOVE_S"):
        return max(size_bytes // 2, mib_of("MIN_CHUNK_MIB"))
    return size_bytes


@contextmanager
def sample_memory(pid: int) -> Iterator[list[Usage]]:
    """Sample the memory of the portal's processes every second until the block ends."""
    usage, stop = [usage_of(pid)], threading.Event()

    def look() -> None:
        while not stop.wait(LOOK_EVERY_S):
            usage.append(usage_of(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield usage
    finally:
        stop.set()
        thread.join()
        usage.append(usage_of(pid))


def noise_file(path: Path, size_bytes: int) -> None:
    """Write a file of no known kind, which is inspected, refused and not stored."""
    block = os.urandom(min(BLOCK_BYTES, size_bytes))
    with path.open("wb") as file:
        for _ in range(size_bytes // len(block)):
            file.write(block)
        os.fsync(file.fileno())  # else the disk is busy with it while others are measured


def slide_file(path: Path, size_bytes: int) -> None:
    """A pyramid of JPEG tiles as scanners write it, of about so many bytes."""
    rng = np.random.default_rng(5)
    tiles = []
    for _ in range(TILES):
        pixels = rng.integers(0, 255, (TILE_PX, TILE_PX, 3), np.uint8)
        tiles.append(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes())
    across = max(int((size_bytes / np.mean([len(tile) for tile in tiles]) * 0.75) ** 0.5), 2)
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        is_first = True
        while across >= 1:
            count = across * across
            tiff.write(
                (tiles[n % TILES] for n in range(count)),
                shape=(across * TILE_PX, across * TILE_PX, 3),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                compression="jpeg",
                photometric="ycbcr",
                subsampling=(2, 2),
                subfiletype=0 if is_first else 1,
                resolution=(20_000, 20_000),  # 0.5 um per pixel
                resolutionunit="CENTIMETER",
                metadata=None,
            )
            is_first, across = False, across // 2


def cat_s(path: Path, folder: Path) -> float:
    """Seconds of ``cat`` to the same disk, until it is written."""
    copy = folder / "copy"
    began = time.perf_counter()
    with copy.open("wb") as out:
        subprocess.run(["cat", str(path)], stdout=out, check=True)
        os.fsync(out.fileno())
    seconds = time.perf_counter() - began
    copy.unlink()
    return seconds


def upload_measured(
    portal: BenchPortal, sender: Sender, pid: int, *, gib: float, slide_gb: float
) -> Section:
    """A large file, and a slide."""
    case = str(portal.canvas.case_id)
    size = int(gib * 2**30)
    section = Section(
        TITLE,
        f"A file of {gib:g} GiB by tus over one connection in pieces that grow as the page's do, "
        "each synced to disk before its response, to the portal as `make serve` starts it, on "
        "SQLite; then a pyramid of JPEG tiles. `cat` writes the same file to the same disk and "
        "syncs it, once before and once after. Private memory is not shared with another process "
        "or a file.",
    )
    large = portal.folder / "large.bin"
    noise_file(large, size)
    before = cat_s(large, portal.folder)
    with sample_memory(pid) as usage:
        began = time.perf_counter()
        address = sender.send(large, case)
        sent = time.perf_counter() - began
    plain = (before + cat_s(large, portal.folder)) / 2
    large.unlink()
    section.rows.append(
        Row("sent", size / 2**20 / sent, "MiB/s", "cat to the same disk", plain / sent, "≥ 0.5x")
    )
    spent = usage[-1].seconds["web"] - usage[0].seconds["web"]
    what = "processor time of the web processes for each GiB"
    section.rows.append(Row(what, spent / gib, "s"))
    for role in ("web", "worker"):
        held = [
            sum(mib for (_, its), mib in record.own_mib.items() if its == role) for record in usage
        ]
        early = max(held[: len(held) // 4 + 1])
        what = (
            f"private memory of the {role} processes, peak ({early:.0f} MiB in the first quarter)"
        )
        section.rows.append(Row(what, max(held), "MiB", budget="flat"))
    section.over_time = memory_over_time(usage)
    began = time.perf_counter()
    end = sender.until(address, lambda seen: seen["state"] != "checking")
    if end["state"] != "refused":
        raise SystemExit(f"noise was taken for an image: {end}")
    section.rows.append(
        Row(
            "inspected and refused, bytes a second",
            size / 2**20 / (time.perf_counter() - began),
            "MiB/s",
        )
    )
    section.rows += _slide(portal, sender, pid, case, int(slide_gb * 1e9))
    return section


def _slide(portal: BenchPortal, sender: Sender, pid: int, case: str, size_bytes: int) -> list[Row]:
    path = portal.folder / "large.tif"
    slide_file(path, size_bytes)
    began = time.perf_counter()
    subprocess.run(["sha256sum", str(path)], stdout=subprocess.DEVNULL, check=True)
    plain = time.perf_counter() - began
    address = sender.send(path, case)
    usage, began = usage_of(pid), time.perf_counter()
    seen = sender.until(address, lambda seen: seen["item"] or seen["state"] == "refused")
    if not seen["item"]:
        raise SystemExit(f"the slide was refused: {seen['error']}")
    item = f"/api/v1/slides/{seen['item']['id']}/"
    ready = sender.until(item, lambda slide: slide["state"] != "preparing")
    seconds, after = time.perf_counter() - began, usage_of(pid)
    if ready["state"] != "ready":
        raise SystemExit(f"the slide was not prepared: {ready['error']}")
    what = f"a slide of {path.stat().st_size / 1e9:.1f} GB, from its last byte until it is ready"
    spent = sum(after.seconds.values()) - sum(usage.seconds.values())
    path.unlink()
    return [
        Row(what, seconds, "s", "sha256sum of it", plain / seconds),
        Row("processor time of the processes that still ran afterwards", spent, "s"),
    ]


def rois_measured(portal: BenchPortal, sender: Sender) -> Section:
    """Time many ROIs in one call, compared with one by one, and their export."""
    from portal.annotations.services.bulk import MAX_STEPS

    canvas = portal.canvas
    section = Section(
        ROIS,
        f"{COUNT:,} squares by `/rois/bulk/`, {MAX_STEPS:,} in a call, compared with {SINGLY} "
        "single calls; then all of them as one GeoJSON file for QuPath, compared with Python "
        "reading and writing its text again. The portal as `make serve` starts it, on SQLite; the "
        "worker embeds at the same time.",
    )
    squares = document(COUNT, width_px=canvas.width_px, height_px=canvas.height_px)
    shapes = [square["geometry"] for square in squares]
    began = time.perf_counter()
    for geometry in shapes[:SINGLY]:
        sender.ask("POST", "/api/v1/rois/", {"canvas": str(canvas.pk), "geometry": geometry})
    singly = SINGLY / (time.perf_counter() - began)
    changes = [{"do": "create", "id": str(uuid.uuid4()), "geometry": shape} for shape in shapes]
    began = time.perf_counter()
    for at in range(0, COUNT, MAX_STEPS):
        part = {"canvas": str(canvas.pk), "changes": changes[at : at + MAX_STEPS]}
        sender.ask("POST", "/api/v1/rois/bulk/", part)
    rate = COUNT / (time.perf_counter() - began)
    section.rows.append(Row("created", rate, "ROIs/s", "single calls", rate / singly))
    began = time.perf_counter()
    data = sender.ask("GET", f"/api/v1/canvases/{canvas.pk}/roi-file/?format=geojson")[1]
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    count = len(json.loads(data)["features"])
    json.dumps(json.loads(data))
    plain = time.perf_counter() - began
    if count < COUNT:
        raise SystemExit(f"{count} of {COUNT} regions came out")
    section.rows.append(
        Row("out", count / seconds, "ROIs/s", "json.loads, json.dumps", plain / seconds)
    )
    return section


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=10.0, help="size of the file")
    parser.add_argument("--slide-gb", type=float, default=2.0, help="size of the slide")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        portal = portal_open(Path(name), {"TESSERA_UPLOAD_MAX_BYTES": str(2**40)})
        person, port = _person(portal, NUMBER), free_port()
        with _serving(portal, port) as serve:
            _answered(port, person)
            sender = Sender(port, person)
            sections = [
                upload_measured(
                    portal, sender, serve.pid, gib=options.gib, slide_gb=options.slide_gb
                ),
                rois_measured(portal, sender),
            ]
    after = "Webhooks to a receiver that fails half the time"
    for section in sections:
        print(f"{section.title}\n{section.note}")
        for row in section.rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}x {row.against}"
            print(f"  {row.what:<70} {row.value:10.2f} {row.unit:<8} {ratio} {row.budget}")
        if options.write:
            report.replace(section, after=after)
        after = section.title
    return 0


def _answered(port: int, person: Person) -> None:
    """Wait until the server responds."""

    def is_served() -> bool:
        try:
            Sender(port, person).json("/api/v1/me/")
        except OSError:
            return False
        return True

    wait_until(is_served, "the portal", within_s=120, every_s=0.3)


if __name__ == "__main__":
    sys.exit(main())
