"""The device that a file names."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from ml.imaging.redaction.device import MAX_CHARS, device
from ml.imaging.slides.pyramids import write_pyramid
from tests.ml.imaging.deidentification.support import write_svs
from tests.ml.imaging.slide_files import write_czi
from tests.ml.imaging.zarrs import ozx, write_ngff

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
    device_name = str(device(path=str(path))["device"])
    assert device_name.startswith("AB xxx") and len(device_name) == MAX_CHARS


@pytest.mark.parametrize("suffix", [".mov", ".mkv", ".mp4"])
def test_the_device_is_read_from_a_video(tmp_path: Path, suffix: str) -> None:
    path = _video(tmp_path / f"clip{suffix}", make="STORZ", model="IMAGE1 S")
    assert device(path=str(path)) == {"device": "STORZ IMAGE1 S"}


@pytest.mark.parametrize("suffix", [".mov", ".mkv", ".mp4", ".avi"])
def test_the_program_that_wrote_a_video_is_not_its_device(tmp_path: Path, suffix: str) -> None:
    assert device(path=str(_video(tmp_path / f"clip{suffix}"))) == {"device": ""}


def _video(path: Path, **tags: str) -> Path:
    """A video that libavformat writes, with metadata."""
    options = {"movflags": "use_metadata_tags"} if path.suffix in {".mov", ".mp4"} else {}
    with av.open(str(path), "w", options=options) as container:
        container.metadata.update(tags)
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height = 64, 48
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def test_a_slide_without_a_maker_has_no_device(tmp_path: Path) -> None:
    path = tmp_path / "slide.tif"
    write_pyramid(np.full((600, 600, 3), 200, np.uint8), path)
    assert device(path=str(path)) == {"device": ""}


def test_a_slide_names_the_scanner_and_its_software(tmp_path: Path) -> None:
    assert device(path=str(write_svs(tmp_path / "a.svs"))) == {
        "device": "Aperio Image Library v11.2.1"
    }
    czi = write_czi(tmp_path / "a.czi", np.full((40, 60, 3), 200, np.uint8))
    assert device(path=str(czi)) == {"device": "zeiss"}


def test_a_zarr_names_the_microscope_of_its_ome_xml(tmp_path: Path) -> None:
    folder = write_ngff(tmp_path / "a")
    assert device(path=str(ozx(folder, tmp_path / "a.zip"))) == {"device": ""}
    (folder / "OME").mkdir()
    (folder / "OME" / "METADATA.ome.xml").write_text(
        '<OME><Instrument><Microscope Manufacturer="Maker" Model="M7"/></Instrument></OME>'
    )
    assert device(path=str(ozx(folder, tmp_path / "b.zip"))) == {"device": "Maker M7"}


def test_a_damaged_file_has_no_device(tmp_path: Path) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe1" + b"\0" * 40)
    assert device(path=str(path)) == {"device": ""}
