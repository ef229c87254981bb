"""The client against a portal: the notebook, lost connections, errors by their kind."""

from __future__ import annotations

import asyncio
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from PIL import Image

from tessera_client import (
    AsyncClient,
    Client,
    ConflictError,
    InvalidError,
    JobError,
    NotAllowedError,
    NotFoundError,
    SignInError,
    files,
)
from tessera_client.__main__ import main
from tests.client.conftest import SOURCES
from tests.world import moving_video_file, slide_file


@pytest.fixture
def tessera(seat, tmp_path):
    with Client(seat.url, seat.token, transfers=tmp_path / "transfers.json") as client:
        yield client


class Flaky(httpx.BaseTransport):
    """Counts requests, and loses the answers to some of them."""

    def __init__(self, lose=lambda request: False):
        self.inner, self.lose, self.sent = httpx.HTTPTransport(), lose, []

    def handle_request(self, request):
        self.sent.append(request.method)
        answer = self.inner.handle_request(request)
        if self.lose(request):
            answer.close()
            raise httpx.ReadError("lost on the way")
        return answer


def flaky(seat, tmp_path, lose):
    transport = Flaky(lose)
    transfers = tmp_path / "transfers.json"
    return Client(seat.url, seat.token, transfers=transfers, transport=transport), transport


def noise(path: Path, seed: int) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 255, (200, 300, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.mark.endurance
def test_the_notebook_runs_from_upload_to_mosaic(seat, tmp_path, monkeypatch):
    values = {
        "TESSERA_URL": seat.url,
        "TESSERA_TOKEN": seat.token,
        "SLIDE": str(slide_file(tmp_path)),
        "VIDEO": str(moving_video_file(tmp_path)),
        "FOLDER": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    book = json.loads((SOURCES / "examples" / "walk.ipynb").read_text())
    namespace: dict[str, object] = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), namespace)
    drawn = json.loads((tmp_path / "rois.geojson").read_text())
    assert len(drawn["features"]) == 4
    assert {hit.roi.id for hit in namespace["answer"].results} <= {
        roi.id for roi in namespace["others"]
    }
    assert namespace["mosaic"].state == "ready" and namespace["mosaic"].registered_count > 1
    with Image.open(tmp_path / "mosaic.png") as image:
        assert image.width > 100
    assert json.loads((tmp_path / "tessera-client" / "transfers.json").read_text()) == {}


def test_an_upload_resumes_after_a_lost_connection_and_is_not_sent_twice(
    seat, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "PIECE_BYTES", 64 * 1024)
    lost = []

    def lose(request):
        if request.method == "PATCH" and len(lost) < 2:
            lost.append(request)
            return True
        return False

    picture = noise(tmp_path / "noise.png", 1)
    client, transport = flaky(seat, tmp_path, lose)
    case = client.create_case("LOST-1")
    seen = []
    slide = client.upload(case, picture, progress=lambda done, size: seen.append((done, size)))
    size = picture.stat().st_size
    assert (slide.state, slide.size_bytes, slide.name) == ("ready", size, "noise.png")
    pieces = -(-size // files.PIECE_BYTES)
    assert transport.sent.count("PATCH") == pieces  # the portal had what its answer did not say
    assert seen[-1] == (size, size) and len(lost) == 2
    again, counted = flaky(seat, tmp_path, lambda request: False)
    other = again.upload(again.create_case("LOST-2"), picture)
    assert other.sha256 == slide.sha256 and "PATCH" not in counted.sent


def test_another_process_resumes_an_interrupted_upload(seat, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 64 * 1024)
    picture = noise(tmp_path / "cut.png", 2)

    def die(done, size):
        if done:
            raise KeyboardInterrupt

    client, first = flaky(seat, tmp_path, lambda request: False)
    case = client.create_case("CUT-1")
    with pytest.raises(KeyboardInterrupt):
        client.upload(case, picture, progress=die)
    assert first.sent.count("PATCH") == 1
    client, second = flaky(seat, tmp_path, lambda request: False)
    assert client.upload(case, picture).state == "ready"
    assert second.sent.count("PATCH") == -(-picture.stat().st_size // files.PIECE_BYTES) - 1


def test_a_file_of_no_known_kind_is_refused_by_name(tessera, tmp_path):
    path = tmp_path / "words.svs"
    path.write_bytes(b"no slide at all" * 100)
    with pytest.raises((InvalidError, JobError)) as refused:
        tessera.upload(tessera.create_case("REFUSED-1"), path)
    assert refused.value.code and refused.value.detail


def test_a_write_with_a_lost_answer_is_carried_out_once(seat, tmp_path):
    lost = []

    def lose(request):
        if request.url.path.endswith("/rois/") and request.method == "POST" and not lost:
            lost.append(request)
            return True
        return False

    client, _ = flaky(seat, tmp_path, lose)
    slide = client.upload(client.create_case("ONCE-1"), noise(tmp_path / "once.png", 3))
    roi = client.create_roi(slide.canvas, [[5, 5], [90, 5], [90, 90]])
    assert lost and [region.id for region in client.rois(slide.canvas)] == [roi.id]
    newer = client.change_roi(roi, name="mine")
    with pytest.raises(ConflictError) as stale:
        client.change_roi(roi, name="theirs")
    assert stale.value.data["current"]["name"] == "mine" and newer.version == 2
    client.delete_roi(newer)
    assert list(client.rois(slide.canvas)) == []


def test_the_command_sends_valid_files_and_names_invalid_ones(seat, tmp_path, monkeypatch, capsys):
    for name, value in {"TESSERA_URL": seat.url, "XDG_CACHE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    good, missing = noise(tmp_path / "good.png", 6), tmp_path / "missing.png"
    requested = ["--case", "SHELL-1", str(missing), str(good)]
    monkeypatch.delenv("TESSERA_TOKEN", raising=False)
    assert main(requested) == 2
    monkeypatch.setenv("TESSERA_TOKEN", seat.token)
    assert main(requested) == 1 and "--create creates it" in capsys.readouterr().err
    assert main(["--create", *requested]) == 1
    output = capsys.readouterr()
    assert f"{good}: slide " in output.out and str(missing) in output.err
    assert main(["--case", "SHELL-1", str(good)]) == 0  # the case is there, and so are the bytes


def test_errors_have_their_kind(seat, tessera):
    with pytest.raises(NotFoundError):
        tessera.case("00000000-0000-4000-8000-000000000000")
    with pytest.raises(InvalidError) as refused:
        tessera.create_case("")
    assert "accession" in refused.value.errors and "accession" in str(refused.value)
    with Client(seat.url, "tess_unknown") as stranger, pytest.raises(SignInError) as unknown:
        stranger.memberships()
    assert unknown.value.code == "token-unknown"


def test_explanations_reports_and_maps(tessera, tmp_path):
    case = tessera.create_case("Reports")
    slide = tessera.upload(case, slide_file(tmp_path))
    canvas = slide.canvas
    first, other = (
        tessera.create_roi(canvas, [[x, 20], [x + 200, 20], [x + 200, 220], [x, 220], [x, 20]])
        for x in (20, 300)
    )
    tessera.search(other)  # waits for its vector
    hits = tessera.search(first, exclude_same_patient=False)
    assert other.id in {hit.roi.id for hit in hits.results}
    assert tessera.explain(first, other)
    report = tessera.create_report(first, exclude_same_patient=False)
    assert report.id in {stored.id for stored in tessera.reports()}
    written = tessera.download_report(report, tmp_path / "report.pdf")
    assert written.read_bytes().startswith(b"%PDF")
    drawn = tessera.draw_map()
    assert drawn.newer == 0
    assert {first.id, other.id} <= set(tessera.map_part(drawn, "points")["rois"])
    assert tessera.map_part(drawn, "unlike", limit=1)["total"] == 0  # nothing has a label
    tessera.delete_report(report)
    assert report.id not in {stored.id for stored in tessera.reports()}


def test_a_case_is_exported_by_a_manager(seat, tessera, tmp_path):
    with Client(seat.url, seat.managers, transfers=tmp_path / "more.json") as manager:
        case = manager.create_case("Along")
        slide = manager.upload(case, slide_file(tmp_path))
        written = manager.export_case(case, tmp_path / "case.zip")
    with zipfile.ZipFile(written) as crate:
        rows = crate.read("records/slides.jsonl").decode().splitlines()
        assert [json.loads(row)["id"] for row in rows] == [slide.id]
        assert crate.testzip() is None
    with pytest.raises(NotAllowedError):
        tessera.export_case(tessera.create_case("Not along"), tmp_path / "none.zip")
    assert not (tmp_path / "none.zip").exists()


def test_a_region_is_talked_about(tessera, tmp_path):
    slide = tessera.upload(tessera.create_case("Talked about"), slide_file(tmp_path))
    roi = tessera.create_roi(slide.canvas, [[5, 5], [90, 5], [90, 90]])
    comments = [tessera.comment(roi, text) for text in ("Larger than before?", "Yes.")]
    assert list(tessera.thread(roi)) == comments
    assert [(comment.kind, comment.text, comment.version) for comment in comments][1] == (
        "comment",
        "Yes.",
        1,
    )


def test_a_case_moves_to_another_lab_with_the_ids_it_had(seat, tmp_path, monkeypatch):
    outline = [[10, 10], [200, 10], [200, 160], [10, 160], [10, 10]]
    with Client(seat.url, seat.managers, transfers=tmp_path / "one.json") as manager:
        case = manager.create_case("MOVES-1", organ="Colon")
        slide = manager.upload(case, slide_file(tmp_path))
        roi = manager.change_roi(manager.create_roi(slide.canvas, outline), name="Gland")
        tile = manager.tile(slide.canvas, 0, 0, 0)
        written = manager.export_case(case, tmp_path / "case.zip")
        other = Client(seat.url, seat.others, transfers=tmp_path / "no.json")
        with other, pytest.raises(JobError) as refused:  # it is there still
            other.import_case(written)
        assert refused.value.code == "import-conflict" and case.id not in refused.value.detail
        manager.request("DELETE", f"cases/{case.id}/")
        entry = next(
            result for result in manager.get("trash/")["results"] if result["target"] == case.id
        )
        manager.request("DELETE", f"trash/{entry['id']}/")

    monkeypatch.setattr(files, "PIECE_BYTES", 16 * 1024)

    def die(done, size):
        if done:
            raise KeyboardInterrupt

    transfers, seen, jobs = tmp_path / "two.json", [], []
    other = Client(seat.url, seat.others, transfers=transfers)
    with other, pytest.raises(KeyboardInterrupt):
        other.import_case(written, progress=die)

    async def again():
        async with AsyncClient(seat.url, seat.others, transfers=transfers) as there:
            return await there.import_case(
                written, progress=lambda done, size: seen.append(done), on_job=jobs.append
            )

    came = in_a_loop(again())
    assert seen[0] == files.PIECE_BYTES  # what had arrived is not sent again
    assert jobs[-1].state == "succeeded" and json.loads(transfers.read_text()) == {}
    assert (came.id, came.accession, came.organ) == (case.id, "MOVES-1", "Colon")
    assert came.lab != case.lab
    with Client(seat.url, seat.others, transfers=transfers) as other:
        for job in other.get("jobs/", kind="slide_ingest")["results"]:
            other.wait(job["id"])
        assert [item.id for item in other.slides(case=came.id)] == [slide.id]
        (result,) = other.rois(slide.canvas)
        assert (result.id, result.name, result.version) == (roi.id, "Gland", 2)
        assert other.tile(slide.canvas, 0, 0, 0) == tile
        assert other.import_case(written).id == case.id  # all of it is here already
    with Client(seat.url, seat.managers, transfers=tmp_path / "one.json") as manager:
        with pytest.raises(NotFoundError):
            manager.case(case)
        damaged = tmp_path / "damaged.zip"
        damaged.write_bytes(written.read_bytes()[:-30])
        with pytest.raises(JobError) as refused:
            manager.import_case(damaged)
        assert refused.value.code == "crate" and "damaged.zip" in refused.value.detail
    annotator = Client(seat.url, seat.token, transfers=tmp_path / "no.json")
    with annotator, pytest.raises(NotAllowedError):
        annotator.import_case(written)


def in_a_loop(steps):
    """Run in a thread of its own: this one has a loop where a browser was driven before."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, steps).result()


def test_the_same_for_an_event_loop(seat, tmp_path):
    async def walk():
        async with AsyncClient(seat.url, seat.token, transfers=tmp_path / "t.json") as tessera:
            case = await tessera.create_case("LOOP-1", organ="Colon")
            pictures = [noise(tmp_path / f"{seed}.png", seed) for seed in (4, 5)]
            slides = await asyncio.gather(*(tessera.upload(case, p) for p in pictures))
            listed = [slide.id async for slide in tessera.slides(case=case.id)]
            rois = await tessera.create_rois(slides[0].canvas, [[[1, 1], [50, 1], [50, 50]]])
            path = await tessera.export_rois(slides[0].canvas, tmp_path / "rois.csv", format="csv")
            return {slide.id for slide in slides} == set(listed), len(rois), path.read_text()

    both, drawn, table = in_a_loop(walk())
    assert both and drawn == 1 and table.count("\n") >= 2


def test_events_come_in_order_and_go_on_after_a_lost_answer(seat, tmp_path):
    portal, _ = flaky(seat, tmp_path, lambda request: False)
    with portal as tessera:
        case = tessera.create_case("T-EVENTS")
        assert list(tessera.events(follow=False)) == []
        slide = tessera.upload(case, noise(tmp_path / "heard.png", 77))
        ready = list(tessera.events("slide.ready", after="0", follow=False))
        assert slide.id in [job.data["id"] for job in ready]
        last = ready[-1].id
        first, second = (
            tessera.create_roi(slide.canvas, [[x, 10], [90, 10], [90, 90]]) for x in (10, 20)
        )
    lost = []

    def lose(request):
        is_first = request.url.path.endswith("/events/") and not lost
        lost.extend([request] if is_first else [])
        return is_first

    portal, transport = flaky(seat, tmp_path, lose)
    with portal as tessera:
        heard = tessera.events("roi.saved", canvas=slide.canvas, after=last, follow=False)
        assert [message.data["id"] for message in heard] == [first.id, second.id]
    assert len(lost) == 1 and len(transport.sent) >= 3
