"""The device that a file names."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from ml.imaging.redaction.device import MAX_CHARS, device
from ml.imaging.slides.pyramids import write_pyramid

PICTURE = Image.fromarray(np.full((40, 60, 3), 200, np.uint8))


def _exif(**tags: str) -> Image.Exif:
    exif = Image.Exif()
    for tag, text in zip((271, 272, 305), tags.values(), strict=False):
        exif[tag] = text
    return exif


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif"])
def test_maker_model_and_software_are_read_from_a_still(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"still{suffix}"
    PICTURE.save(path, exif=_exif(make="OLYMPUS", model="CV-190", software="4.1"))
    assert device(path=str(path)) == {"device": "OLYMPUS CV-190 4.1"}


def test_a_still_without_metadata_has_no_device(tmp_path: Path) -> None:
    PICTURE.save(tmp_path / "still.png")
    assert device(path=str(tmp_path / "still.png")) == {"device": ""}


def test_a_name_is_bounded_and_printable(tmp_path: Path) -> None:
    path = tmp_path / "still.jpg"
    PICTURE.save(path, exif=_exif(make="A\x07B\n", model="A\x07B", software="x" * 500))
    found = str(device(path=str(path))["device"])
    assert found.startswith("AB xxx") and len(found) == MAX_CHARS


def test_the_device_is_read_from_a_video(tmp_path: Path) -> None:
    path = tmp_path / "clip.mov"
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as container:
        container.metadata["make"] = "STORZ"
        container.metadata["model"] = "IMAGE1 S"
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height = 64, 48
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert str(device(path=str(path))["device"]).startswith("STORZ IMAGE1 S")


def test_a_slide_without_a_maker_has_no_device(tmp_path: Path) -> None:
    path = tmp_path / "slide.tif"
    write_pyramid(np.full((600, 600, 3), 200, np.uint8), path)
    assert device(path=str(path)) == {"device": ""}


def test_a_damaged_file_has_no_device(tmp_path: Path) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe1" + b"\0" * 40)
    assert device(path=str(path)) == {"device": ""}
