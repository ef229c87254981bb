"""Patches read by processes ahead of who works on them: the same pixels, the same errors."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError, CorruptFileError, ReaderLostError
from ml.imaging.slides import prefetch as module
from ml.imaging.slides.patches import SlidePatches
from ml.imaging.slides.prefetch import PatchRequest, PrefetchPool, prefetch_process_count
from ml.imaging.slides.prefetch_process import BUFFER_BYTES
from ml.imaging.slides.slide import open_slide

SIDE = 96
CORNERS = [(x, y) for y in range(0, 500, 90) for x in range(0, 700, 60)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    small = rng.integers(0, 255, (140, 180, 3), dtype=np.uint8)
    result = tmp_path_factory.mktemp("ahead") / "slide.png"
    Image.fromarray(small).resize((1800, 1400)).save(result)
    return result


@pytest.fixture(scope="module")
def readers():
    pool = PrefetchPool(2)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def slide(path):
    with open_slide(path) as result:
        yield result


def begun(readers, slide, corners=CORNERS, side=SIDE, path=None):
    def plain():
        return SlidePatches(slide, downsample=2.0, corners_px=corners, patch_px=side)

    return readers.start(PatchRequest(path or slide.path, 2.0, corners, side), plain), plain()


@pytest.mark.slow
def test_prefetched_pixels_equal_those_read_in_this_process(readers, slide):
    sources = [begun(readers, slide, CORNERS[i::3]) for i in range(3)]
    for number, (source, plain) in enumerate(sources):
        for corner in [*CORNERS[number::3], *CORNERS[number::3]]:
            assert np.array_equal(source.read(corner, SIDE), plain.read(corner, SIDE))
    source, plain = sources[0]
    assert np.array_equal(source.read((33, 44), SIDE), plain.read((33, 44), SIDE))
    assert source.read(CORNERS[0], 50).shape == (50, 50, 3)


def test_more_patches_than_the_buffer_are_returned_in_parts(readers, slide, monkeypatch):
    side = 480
    assert len(CORNERS) * side**2 * 3 > 2 * BUFFER_BYTES
    source, plain = begun(readers, slide, side=side)
    for corner in reversed(CORNERS):
        assert np.array_equal(source.read(corner, side), plain.read(corner, side))
    huge, plain = begun(readers, slide, [(0, 0)], 2000)  # one alone is larger than the buffer
    assert np.array_equal(huge.read((0, 0), 2000), plain.read((0, 0), 2000))


def test_an_unreadable_region_raises_the_same_error_as_without_prefetch(readers, slide, tmp_path):
    gone, _ = begun(readers, slide, path=tmp_path / "gone.png")
    assert gone.read(CORNERS[0], SIDE).shape == (SIDE, SIDE, 3)  # the open file is still there

    def damaged():
        raise CorruptFileError("gone.png: cut")

    source = readers.start(PatchRequest(tmp_path / "gone.png", 2.0, CORNERS, SIDE), damaged)
    with pytest.raises(CorruptFileError, match=r"^gone\.png: cut$"):
        source.read(CORNERS[0], SIDE)


@pytest.mark.slow
def test_a_killed_process_is_reported_and_replaced_for_the_next_request(slide):
    readers = PrefetchPool(1)
    first, _ = begun(readers, slide)
    with first._changed:
        first._changed.wait_for(lambda: first._ended)
    (reader,) = readers.processes
    os.kill(reader.process.pid, signal.SIGSTOP)  # it receives the next request and does nothing
    written, pipe = threading.Event(), reader.process.stdin
    flush = pipe.flush
    reader.process.stdin = SimpleNamespace(
        write=pipe.write, close=pipe.close, flush=lambda: (flush(), written.set())
    )
    lost, _ = begun(readers, slide)
    assert written.wait(10)
    os.kill(reader.process.pid, signal.SIGKILL)
    with pytest.raises(ReaderLostError) as raised:
        lost.read(CORNERS[0], SIDE)
    assert "slide.png" in str(raised.value) and "signal 9" in str(raised.value)
    assert isinstance(raised.value, OSError)  # jobs try again after such errors
    again, plain = begun(readers, slide)
    assert np.array_equal(again.read(CORNERS[3], SIDE), plain.read(CORNERS[3], SIDE))
    readers.close()


def test_reading_stops_for_a_dropped_request(slide):
    readers = PrefetchPool(1)
    dropped, _ = begun(readers, slide, side=480)
    dropped.close()
    waiting, _ = begun(readers, slide)
    waiting.close()
    last, _ = begun(readers, slide)
    last.read(CORNERS[-1], SIDE)
    assert len(dropped._patches) < len(CORNERS) and not waiting._patches
    readers.close()


@pytest.mark.slow
def test_a_prefetching_process_ends_with_its_parent_and_loads_no_torch(path):
    code = f"""
import os
from ml.imaging.slides.prefetch import PatchRequest, PrefetchPool
readers = PrefetchPool(1)
request = PatchRequest({str(path)!r}, 2.0, [(0, 0)], 96)
readers.start(request, lambda: None).read((0, 0), 96)
pid = readers.processes[0].process.pid
print(pid, "libtorch" in open(f"/proc/{{pid}}/maps").read(), flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid, has_torch = done.stdout.split()
    assert has_torch == "False"
    with suppress(ProcessLookupError):  # it has ended and was reaped
        ended = os.pidfd_open(int(pid))
        try:
            assert select.select([ended], [], [], 10)[0]
        finally:
            os.close(ended)


def test_a_number_of_readers_that_is_no_number_raises_an_error(monkeypatch):
    monkeypatch.delenv(module.VARIABLE, raising=False)
    assert prefetch_process_count(default=3) == 3
    monkeypatch.setenv(module.VARIABLE, "2")
    assert prefetch_process_count(default=0) == 2
    monkeypatch.setenv(module.VARIABLE, "many")
    with pytest.raises(BadInputError, match="TESSERA_READERS"):
        prefetch_process_count(default=0)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert module.default_process_count() == 0
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert module.default_process_count() == module.MAX_PROCESSES
