"""Patches read by separate processes, ahead of the encoder that works on them.

Decoding holds the interpreter's lock now and then, and a GPU waits for it. A reader is another
process (``ml.imaging.slides.reader``) with a slide open; pixels come back through memory that both
map. What is held is bounded: a reader's buffer, and the patches of the regions that were begun.
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ReaderLostError
from ml.imaging.slides.patches import Corner, PatchSource
from ml.imaging.slides.reader import BUFFER_BYTES, GO, STOP
from ml.types import DisplayRange, ImageU8

ArrayU8 = npt.NDArray[np.uint8]
Plain = Callable[[], PatchSource]
VARIABLE = "TESSERA_READERS"
"""How many processes read ahead; unset: the default of ``readers_asked``."""
ENDS_S = 1.0
"""A reader whose input has ended ends by itself; one that decodes does so a moment later."""
MOST = 4
"""Readers started by default, at most: each takes some 100 MB, and four keep a GPU busy."""


def readers_asked(*, default: int) -> int:
    """What ``TESSERA_READERS`` says, or the default.

    Raises:
        BadInputError: not a whole number of 0 or more.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return default
    if not text.isdecimal():
        raise BadInputError(f"{VARIABLE}: expected a number of processes or 0, got {text!r}")
    return int(text)


def default_readers() -> int:
    """For a GPU: one core is left for the process that feeds it."""
    return min(MOST, max(0, (os.cpu_count() or 1) - 1))


@cache
def slide_readers(count: int) -> SlideReaders:
    """The readers of this process: started at their first use, ended with it."""
    return SlideReaders(count)


class ReadAhead:
    """A ``PatchSource`` whose patches a reader fetches; it keeps them until it is dropped.

    What a reader cannot read is read here instead, by ``plain``, so that the same error is raised
    as without readers. Only a reader that ends by itself is an error of its own.
    """

    def __init__(
        self,
        path: Path,
        downsample: float,
        corners: list[Corner],
        patch_px: int,
        plain: Plain,
        *,
        display_range: DisplayRange | None = None,
    ) -> None:
        self.path, self.downsample, self.patch_px = path, downsample, patch_px
        self.display_range = display_range
        self.corners = list(dict.fromkeys(corners))
        self.is_dropped = False
        self._asked = set(self.corners)
        self._patches: dict[Corner, ImageU8] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._error: ReaderLostError | None = None
        self._make = plain
        self._plain: PatchSource | None = None

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``.

        Raises:
            ReaderLostError: the process that read it has ended.
        """
        if corner_px in self._asked and patch_px == self.patch_px:
            with self._changed:
                self._changed.wait_for(lambda: corner_px in self._patches or self._ended)
                if corner_px in self._patches:
                    return self._patches[corner_px]
                if self._error is not None:
                    raise self._error
        with self._changed:
            if self._plain is None:
                self._plain = self._make()
        return self._plain.read(corner_px, patch_px)

    def add(self, corners: list[Corner], patches: ImageU8) -> None:
        """Take (N, patch_px, patch_px, 3) patches."""
        with self._changed:
            self._patches.update(zip(corners, patches, strict=True))
            self._changed.notify_all()

    def end(self, error: ReaderLostError | None = None) -> None:
        """No more come."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody wants the rest."""
        self.is_dropped = True


class SlideReaders:
    """A small pool of readers; regions are read in the order they were begun."""

    def __init__(self, count: int) -> None:
        self._idle: queue.SimpleQueue[ReadingProcess] = queue.SimpleQueue()
        self.readers = [ReadingProcess() for _ in range(count)]
        for reader in self.readers:
            self._idle.put(reader)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="patches")

    def begin(
        self,
        path: Path,
        downsample: float,
        corners: list[Corner],
        patch_px: int,
        plain: Plain,
        *,
        display_range: DisplayRange | None = None,
    ) -> ReadAhead:
        """Begin to read patches.

        Args:
            path: of a slide or still. downsample: its pixels for one of the encoder.
            corners: of the patches, in pixels of the encoder; read in this order.
            plain: makes the source that reads in this process.
            display_range: as in ``open_slide``.
        """
        source = ReadAhead(path, downsample, corners, patch_px, plain, display_range=display_range)
        self._threads.submit(self._fill, source)
        return source

    def close(self) -> None:
        """End the readers."""
        self._threads.shutdown(cancel_futures=True)
        for reader in self.readers:
            reader.end()

    def _fill(self, source: ReadAhead) -> None:
        reader = self._idle.get()
        try:
            if not source.is_dropped:
                reader.fill(source)
            source.end()
        except (OSError, ValueError):  # a closed pipe, half a line
            status = reader.end()
            told = f"signal {-status}" if status < 0 else f"exit status {status}"
            why = f"{source.path.name}: the process that read it ahead ended unexpectedly ({told})"
            source.end(ReaderLostError(why))
        finally:
            self._idle.put(reader)


class ReadingProcess:
    """One process that reads, started when it is needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._shared: tuple[int, ArrayU8] | None = None

    def fill(self, source: ReadAhead) -> None:
        """Read all of a source's patches into it.

        Raises:
            OSError, ValueError: the process has ended.
        """
        process, pixels = self._started()
        if process.stdin is None or process.stdout is None:
            raise OSError("a reader without pipes")
        wanted = {
            "path": str(source.path),
            "downsample": source.downsample,
            "corners": source.corners,
            "patch_px": source.patch_px,
            "display_range": source.display_range and asdict(source.display_range),
        }
        print(json.dumps(wanted), file=process.stdin, flush=True)
        at = 0
        while count := json.loads(process.stdout.readline()):
            size = count * source.patch_px**2 * 3
            shape = (count, source.patch_px, source.patch_px, 3)
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
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return process.returncode

    def _started(self) -> tuple[subprocess.Popen[str], ArrayU8]:
        if self._shared is None:
            self._shared = _shared_memory()
        descriptor, pixels = self._shared
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ml.imaging.slides.reader", str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C is meant for its parent
            )
        return self.process, pixels


def _shared_memory() -> tuple[int, ArrayU8]:
    """A file that no folder holds, and its bytes."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("patches")
    else:
        descriptor, name = tempfile.mkstemp()
        Path(name).unlink()
    os.ftruncate(descriptor, BUFFER_BYTES)
    return descriptor, np.frombuffer(mmap.mmap(descriptor, BUFFER_BYTES), np.uint8)
