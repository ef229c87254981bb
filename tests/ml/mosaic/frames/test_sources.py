"""Frames of a folder: their order, and the file that each came from."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.mosaic.build import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.sources import open_source
from ml.mosaic.manifest import read_manifest
from tests.ml.mosaic.conftest import Sweep


def write_frames(folder: Path, names: list[str]) -> None:
    folder.mkdir()
    for number, name in enumerate(names):
        cv2.imwrite(str(folder / name), np.full((16, 24, 3), number * 10, np.uint8))


def test_frames_of_a_folder_come_in_natural_order_with_their_names(tmp_path: Path) -> None:
    names = [f"Frame_{n}.png" if n % 3 else f"frame_{n}.PNG" for n in range(1, 13)]
    write_frames(tmp_path / "frames", names)
    items = list(open_source(tmp_path / "frames").frames())
    assert [frame.name for frame in items] == names
    assert [int(frame.rgb[0, 0, 0]) for frame in items if frame.rgb is not None] == [
        10 * n for n in range(12)
    ]
    stepped = list(open_source(tmp_path / "frames", step=5).frames(1))
    assert [frame.name for frame in stepped] == [names[5], names[10]]


@pytest.mark.slow
def test_the_manifest_names_the_file_of_each_frame(tmp_path: Path, sweep: Sweep) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    for number, rgb in enumerate(sweep.frames, 1):
        cv2.imwrite(str(frames / f"frame_{number}.png"), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
    (frames / "frame_3.png").write_bytes(b"no picture")
    build_mosaic(frames, tmp_path / "mosaic", work_dir=tmp_path / "work")
    names = [f"frame_{number}.png" for number in range(1, len(sweep.frames) + 1)]
    assert len(names) > 9
    mosaic = read_manifest(tmp_path / "mosaic")
    assert [frame.name for frame in mosaic.frames] == names
    assert mosaic.frames[2].reason_code == "unreadable"
    in_order = build_mosaic(sweep.frames[:2] + sweep.frames[3:], tmp_path / "in-order")
    assert mosaic.registered_count == in_order.registered_count == len(names) - 1
    assert {frame.name for frame in in_order.frames} == {""}


@pytest.mark.slow
def test_a_folder_that_grows_past_nine_frames_continues(tmp_path: Path, sweep: Sweep) -> None:
    frames, later = tmp_path / "frames", tmp_path / "later"
    for number, rgb in enumerate(sweep.frames, 1):
        folder = frames if number <= 9 else later
        folder.mkdir(exist_ok=True)
        cv2.imwrite(str(folder / f"{number}.png"), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
    config, work = MosaicConfig(), tmp_path / "work"
    build_mosaic(frames, tmp_path / "first", config=config, work_dir=work, grows=True)
    for path in later.iterdir():
        shutil.move(path, frames)
    grown = build_mosaic(frames, tmp_path / "second", config=config, work_dir=work, grows=True)
    assert [frame.name for frame in grown.frames] == [
        f"{number}.png" for number in range(1, len(sweep.frames) + 1)
    ]
