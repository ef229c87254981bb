"""Files with exact truth: numbered-frame videos, tiny pyramids, broken headers."""

from __future__ import annotations

import struct
import sys
import wave
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from ml.imaging.slides.pyramids import write_pyramid
from ml.types import ImageU8

BITS = 12
BLOCK_PX = 16


def numbered(n: int, size: tuple[int, int] = (192, 64)) -> ImageU8:
    """A frame that shows its number as black and white blocks, readable after lossy coding."""
    rgb = np.full((size[1], size[0], 3), 128, np.uint8)
    for bit in range(BITS):
        rgb[:32, bit * BLOCK_PX : (bit + 1) * BLOCK_PX] = 235 if n >> bit & 1 else 20
    rgb[32:] = (40 + n * 7 % 160, 90, 200 - n * 3 % 120)
    return rgb


def number_of(rgb: ImageU8) -> int:
    """The number that a frame of ``numbered`` shows."""
    rows = rgb[8:24].mean(axis=(0, 2))
    means = rows[: BITS * BLOCK_PX].reshape(BITS, BLOCK_PX)[:, 4:12].mean(axis=1)
    return sum(1 << bit for bit, mean in enumerate(means) if mean > 128)


MakeVideo = Callable[..., Path]


@pytest.fixture
def make_video(tmp_path: Path) -> MakeVideo:
    """``make_video(name, codec, frames=..., container=..., pts=...)`` of numbered frames."""

    def make(
        name: str,
        codec: str,
        *,
        frames: int = 60,
        container: str | None = None,
        pts: list[int] | None = None,
        base: Fraction = Fraction(1, 25),
        options: dict[str, str] | None = None,
        muxing: dict[str, str] | None = None,
        pix_fmt: str = "yuv420p",
        size: tuple[int, int] = (192, 64),
        rotation_deg: int = 0,
    ) -> Path:
        path = tmp_path / name
        with av.open(str(path), "w", format=container, options=muxing or {}) as target:
            stream: Any = target.add_stream(codec, rate=25, options=options or {})
            stream.width, stream.height, stream.pix_fmt = *size, pix_fmt
            stream.codec_context.thread_count = 1
            if pts is not None:
                stream.time_base = stream.codec_context.time_base = base
            if rotation_deg:
                stream.set_display_rotation(rotation_deg)
            for n in range(frames):
                frame = av.VideoFrame.from_ndarray(numbered(n, size), format="rgb24")
                frame.pts = n if pts is None else pts[n]
                frame.time_base = base
                target.mux(stream.encode(frame))
            target.mux(stream.encode(None))
        return path

    return make


@pytest.fixture
def audio_only(tmp_path: Path) -> Path:
    """An mp4 with only sound."""
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as target:
        stream = target.add_stream("aac", rate=44_100)
        for n in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1_024), np.float32), "fltp", "mono")
            frame.rate, frame.pts = 44_100, n * 1_024
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return path


@pytest.fixture
def wav_file(tmp_path: Path) -> Path:
    """A second of silence."""
    path = tmp_path / "silence.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(16_000))
    return path


@pytest.fixture(scope="session")
def gradient() -> ImageU8:
    """(600, 700, 3): red grows rightwards, green downwards, blue is a chequer of 64 px."""
    y, x = np.mgrid[:600, :700]
    chequer = ((x // 64 + y // 64) % 2) * 120 + 60
    return np.stack([x * 255 // 699, y * 255 // 599, chequer], axis=-1).astype(np.uint8)


@pytest.fixture
def pyramid(tmp_path: Path, gradient: ImageU8) -> Path:
    """``gradient`` as a tiled pyramid of 0.25 um per pixel with 16-bit-aligned small tiles."""
    return write_pyramid(gradient, tmp_path / "pyramid.tif", mpp=0.25, tile_px=128)


def tiff_bytes(entries: list[tuple[int, int, int, int]], *, order: str = "<") -> bytes:
    """A classic TIFF of one directory: (tag, type, count, value) with inline values."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    body = struct.pack(order + "H", len(entries))
    for tag, kind, count, value in entries:
        body += struct.pack(order + "HHI", tag, kind, count)
        body += (
            struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value)
        )
    return head + body + struct.pack(order + "I", 0)


@pytest.fixture
def giant_tiff(tmp_path: Path) -> Path:
    """A tiled TIFF of 200 bytes that claims 2^31 x 2^31 pixels."""
    side = 2**31
    entries = [
        (256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
        (277, 3, 1, 1), (322, 4, 1, 256), (323, 4, 1, 256), (324, 4, 1, 8), (325, 4, 1, 16),
    ]  # fmt: skip
    path = tmp_path / "giant.tif"
    path.write_bytes(tiff_bytes(entries) + bytes(64))
    return path


@pytest.fixture
def child_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that misbehaves in a child process, each function in its own way."""
    (tmp_path / "misbehaving.py").write_text(_MISBEHAVING)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "misbehaving"
    sys.modules.pop("misbehaving", None)


_MISBEHAVING = """
import os, resource, signal, time

def answer(*, progress, **arguments):
    progress(1, 2, "half")
    return {"arguments": arguments, "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
            "environment": sorted(os.environ), "group": os.getpgrp() == os.getpid()}

def refuse(*, progress, kind):
    import ml.errors
    if kind == "UnknownNameError":
        raise ml.errors.UnknownNameError("encoder", "x", ["a"])
    raise getattr(ml.errors, kind)("this is why")

def refuse_as_subclass(*, progress):
    from ml.imaging.slides.tiles import TileOutsideError
    raise TileOutsideError("outside")

def crash(*, progress, number):
    os.kill(os.getpid(), number)

def hang(*, progress, pid_path):
    child = os.fork()
    if child == 0:
        signal.pause()
    open(pid_path, "w").write(f"{os.getpid()} {child}")
    signal.pause()

def spin(*, progress):
    while True:
        pass

def devour(*, progress):
    return {"size": len(bytearray(4 * 1024**3))}

def write_much(*, progress, path):
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(1024 * 1024))
    return {}

def bug(*, progress):
    return {}["missing"]

def exit_silently(*, progress):
    os._exit(3)

def open_unchecked(*, progress, path):
    import openslide
    try:
        return {"size": openslide.OpenSlide(path).dimensions}
    except openslide.OpenSlideError as error:
        return {"error": str(error)}

def attempt(*, progress, path, other):
    # what each forbidden thing answers: "done", or the name of the error
    import socket, subprocess, tempfile
    def connect():
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    attempts = {
        "read": lambda: open(path).read(),
        "read_other": lambda: open(other).read(),
        "read_by_link": lambda: (os.symlink(other, path + ".link"), open(path + ".link").read()),
        "list_other": lambda: os.listdir(os.path.dirname(other)),
        "write_other": lambda: open(other + ".new", "w"),
        "append_other": lambda: open(other, "a"),
        "remove_other": lambda: os.remove(other),
        "passwd": lambda: open("/etc/passwd").read(),
        "parents_environment": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
        "program": lambda: subprocess.run(["/bin/true"], check=True),
        "tcp": connect,
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "unix": lambda: socket.socket(socket.AF_UNIX),
        "signal_parent": lambda: os.kill(os.getppid(), 0),
        "temporary": lambda: tempfile.TemporaryFile().write(b"x"),
        "late_import": lambda: __import__("wave"),
    }
    answers = {}
    for name, act in attempts.items():
        try:
            act()
            answers[name] = "done"
        except OSError as error:
            answers[name] = type(error).__name__
    return answers
"""
