"""Read-ahead of video frames: a cache miss decodes the whole run of neighbouring frames.

Decoding a frame in the middle of a group of pictures costs everything from its key frame. So the
frames of a video are divided into runs. The first request for a frame decodes its run in one thread
on this machine and caches all of it. The requested frame is encoded first: its request returns
while the thread writes the rest.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ml.errors import MlError
from ml.imaging.slides.jpeg import encode_jpeg
from ml.types import FrameTable, ImageU8
from portal.archive.storage import files as storage

RUN_FRAMES = 24
"""About a second: a thread is busy for half of one at 1080p, and a key held down needs one run a
second."""
_LOOK_EVERY_S = 0.005  # while another thread or process decodes the run
_MAX_WAIT_S = 30.0  # then this request decodes its frame by itself
_HELD_BYTES = 96 * 2**20
"""Largest size of decoded frames buffered before the requested one; beyond it they are encoded
in order."""


@dataclass(slots=True)
class _Run:
    """A decoding run.

    ``ready`` is set once the frame ``requested_index`` is decoded, or the run has failed.
    """

    source: Path
    table: FrameTable
    folder: Path
    requested_index: int
    ready: threading.Event = field(default_factory=threading.Event)
    data: bytes | None = None
    error: BaseException | None = None

    @property
    def span(self) -> range:
        """Indices of the frames of the run."""
        first = self.requested_index - self.requested_index % RUN_FRAMES
        return range(first, min(first + RUN_FRAMES, len(self.table)))


def frame_by_run(source: Path, table: FrameTable, index: int, folder: Path) -> bytes:
    """A frame as JPEG; its run is cached in ``folder`` as ``<pts>.jpg``.

    Raises:
        OSError, MlError: the stored file cannot be read or decoded.
    """
    run = _Run(source, table, folder, index)
    target = folder / f"{int(table.pts[index])}.jpg"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / f"run-{run.span.start}.lock"
    stop = time.monotonic() + _MAX_WAIT_S
    while time.monotonic() < stop:
        file = _try_lock(lock)
        if file is not None:
            with suppress(FileNotFoundError):  # the previous holder of the lock may have written it
                data = target.read_bytes()
                file.close()
                return data
            threading.Thread(target=_work, args=(run, file), daemon=True).start()
            break
        with suppress(FileNotFoundError):
            return target.read_bytes()
        time.sleep(_LOOK_EVERY_S)
    else:
        _decode(run, requested_only=True)
    run.ready.wait()
    if run.error is not None:
        raise run.error
    if run.data is None:
        raise MlError(f"frame {index} was not found while decoding")
    return run.data


class _Lock:
    """A lock that ends with its file descriptor, however its process ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go."""
        self._file.close()


def _try_lock(path: Path) -> _Lock | None:
    try:
        return _Lock(path)
    except BlockingIOError:
        return None


def _work(run: _Run, lock: _Lock) -> None:
    try:
        _decode(run)
    finally:
        lock.close()


def _decode(run: _Run, *, requested_only: bool = False) -> None:
    """Decode the requested frame first, then those before it, then those after it."""
    before: list[tuple[int, ImageU8]] = []
    try:
        for index, pts, rgb in _frames(run):
            if index < run.requested_index and len(before) * rgb.nbytes < _HELD_BYTES:
                before.append((pts, rgb))
                continue
            data = _publish(run.folder, pts, rgb)
            if index != run.requested_index:
                continue
            run.data = data
            run.ready.set()
            if requested_only:
                return
            while before:
                _publish(run.folder, *before.pop())
    except (OSError, MlError) as error:
        run.error = run.error if run.data else error
    finally:
        run.ready.set()


def _frames(run: _Run) -> Iterator[tuple[int, int, ImageU8]]:
    from ml.imaging.videos.video import iter_frames

    pts = run.table.pts
    first, last = int(pts[run.span.start]), int(pts[run.span.stop - 1])
    return iter_frames(run.source, start_pts=first, stop_pts=last, table=run.table)


def _publish(folder: Path, pts: int, rgb: ImageU8) -> bytes:
    data = encode_jpeg(rgb)
    storage.file_publish(folder / f"{pts}.jpg", data)
    return data


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold a lock file: of several that would make the same file, the others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
