"""Patches read by separate processes while the encoder works on earlier ones.

Decoding may hold the interpreter lock, and a GPU would wait for it. Each process
(``ml.imaging.slides.prefetch_process``) has a slide open; pixels come back in shared memory. Memory
is bounded: the buffer of each process, and the patches of the started requests.
"""

from __future__ import annotations

import json
import mmap
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ReaderLostError
from ml.imaging.slides.patches import Corner, PatchSource
from ml.imaging.slides.prefetch_process import BUFFER_BYTES, GO, STOP
from ml.types import DisplayRange, ImageU8

ArrayU8 = npt.NDArray[np.uint8]
SourceFactory = Callable[[], PatchSource]
VARIABLE = "TESSERA_READERS"
"""Number of prefetching processes; unset: the default of ``prefetch_process_count``."""
EXIT_TIMEOUT_S = 1.0
"""A process whose input has ended exits by itself, after the patch that it decodes."""
MAX_PROCESSES = 4
"""Largest default number of processes: each takes some 100 MB, and four keep a GPU busy."""


def prefetch_process_count(*, default: int) -> int:
    """Value of ``TESSERA_READERS``, or the default.

    Raises:
        BadInputError: Not an integer of 0 or more.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return default
    if not text.isdecimal():
        raise BadInputError(f"{VARIABLE}: expected a number of processes or 0, got {text!r}")
    return int(text)


def default_process_count() -> int:
    """Default number of processes for a GPU: one core is left for the process that feeds it."""
    return min(MAX_PROCESSES, max(0, (os.cpu_count() or 1) - 1))


@cache
def prefetch_pool(count: int) -> PrefetchPool:
    """Prefetching processes of this process, started at their first use."""
    return PrefetchPool(count)


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """Patches to read from one file.

    Attributes:
        path: Path of a slide or still image.
        downsample: Pixels of the file per pixel of the encoder.
        corners: Upper left corners (x, y) in pixels of the encoder, in reading order.
        patch_px: Side of a patch, in pixels of the encoder.
        display_range: As in ``open_slide``.
    """

    path: Path
    downsample: float
    corners: Sequence[Corner]
    patch_px: int
    display_range: DisplayRange | None = None


class PrefetchedPatches:
    """A ``PatchSource`` whose patches another process reads; all stay in memory.

    Patches that this process cannot read are read here, so that the error is the same as without
    prefetching. Only a process that ends unexpectedly has an error of its own.
    """

    def __init__(self, request: PatchRequest, open_source: SourceFactory) -> None:
        self.request = request
        self.corners = list(dict.fromkeys(request.corners))
        self.is_dropped = False
        self._requested = set(self.corners)
        self._patches: dict[Corner, ImageU8] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._error: ReaderLostError | None = None
        self._open_source = open_source
        self._source: PatchSource | None = None

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``.

        Raises:
            ReaderLostError: The prefetching process has ended.
        """
        if corner_px in self._requested and patch_px == self.request.patch_px:
            with self._changed:
                self._changed.wait_for(lambda: corner_px in self._patches or self._ended)
                if corner_px in self._patches:
                    return self._patches[corner_px]
                if self._error is not None:
                    raise self._error
        with self._changed:
            if self._source is None:
                self._source = self._open_source()
        return self._source.read(corner_px, patch_px)

    def add(self, corners: list[Corner], patches: ImageU8) -> None:
        """Add patches (N, patch_px, patch_px, 3) uint8 of ``corners``."""
        with self._changed:
            self._patches.update(zip(corners, patches, strict=True))
            self._changed.notify_all()

    def end(self, error: ReaderLostError | None = None) -> None:
        """Mark the end of the patches."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Drop the remaining patches."""
        self.is_dropped = True


class PrefetchPool:
    """A pool of prefetching processes; requests are read in the order of their start."""

    def __init__(self, count: int) -> None:
        self._idle: queue.SimpleQueue[PrefetchProcess] = queue.SimpleQueue()
        self.processes = [PrefetchProcess() for _ in range(count)]
        for process in self.processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="patches")

    def start(self, request: PatchRequest, open_source: SourceFactory) -> PrefetchedPatches:
        """Start to read patches.

        Args:
            open_source: Opens the source that reads in this process.
        """
        source = PrefetchedPatches(request, open_source)
        self._threads.submit(self._fill, source)
        return source

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(cancel_futures=True)
        for process in self.processes:
            process.end()

    def _fill(self, source: PrefetchedPatches) -> None:
        reader = self._idle.get()
        try:
            if not source.is_dropped:
                reader.fill(source)
            source.end()
        except (OSError, ValueError):  # a closed pipe, or a truncated line
            status = reader.end()
            end = f"signal {-status}" if status < 0 else f"exit status {status}"
            name = source.request.path.name
            source.end(
                ReaderLostError(f"{name}: the prefetching process ended unexpectedly ({end})")
            )
        finally:
            self._idle.put(reader)


class PrefetchProcess:
    """One prefetching process, started when it is needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._shared: tuple[int, ArrayU8] | None = None

    def fill(self, source: PrefetchedPatches) -> None:
        """Read all patches of a source into it.

        Raises:
            OSError, ValueError: The process has ended.
        """
        process, pixels = self._start_process()
        if process.stdin is None or process.stdout is None:
            raise OSError("a reader without pipes")
        request = source.request
        message = {
            "path": str(request.path),
            "downsample": request.downsample,
            "corners": source.corners,
            "patch_px": request.patch_px,
            "display_range": request.display_range and asdict(request.display_range),
        }
        print(json.dumps(message), file=process.stdin, flush=True)
        at = 0
        while count := json.loads(process.stdout.readline()):
            size = count * request.patch_px**2 * 3
            shape = (count, request.patch_px, request.patch_px, 3)
            source.add(source.corners[at : at + count], pixels[:size].reshape(shape).copy())
            at += count
            print(STOP if source.is_dropped else GO, file=process.stdin, flush=True)

    def end(self) -> int:
        """End the process, which the next use starts again.

        Returns:
            Its exit status; a signal's number below 0.
        """
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return process.returncode

    def _start_process(self) -> tuple[subprocess.Popen[str], ArrayU8]:
        if self._shared is None:
            self._shared = _shared_memory()
        descriptor, pixels = self._shared
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ml.imaging.slides.prefetch_process", str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C is meant for its parent
            )
        return self.process, pixels


def _shared_memory() -> tuple[int, ArrayU8]:
    """Anonymous file, and its bytes as an array."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("patches")
    else:
        descriptor, name = tempfile.mkstemp()
        Path(name).unlink()
    os.ftruncate(descriptor, BUFFER_BYTES)
    return descriptor, np.frombuffer(mmap.mmap(descriptor, BUFFER_BYTES), np.uint8)
