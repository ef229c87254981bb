"""Slides in TIFF: names gone, tiles where they were."""

from __future__ import annotations

import os
from pathlib import Path

import openslide
import pytest
import tifffile

from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.tiles import TileSource
from tests.ml.imaging.deidentify.support import SECRET, clean, write_svs
from tests.ml.imaging.several import picture


@pytest.mark.parametrize("bigtiff", [False, True])
def test_an_aperio_slide_loses_names_label_and_macro_and_no_tile(
    tmp_path: Path, bigtiff: bool
) -> None:
    source = write_svs(tmp_path / "a.svs", bigtiff=bigtiff)
    assert set(openslide.OpenSlide(source).associated_images) == {"thumbnail", "label", "macro"}
    made, cleaned = clean(source, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == [
        *("Artist", "Date", "DateTime", "Filename", "Title", "User", "label image", "macro image")
    ]
    data = made.read_bytes()
    assert SECRET.encode() not in data
    assert b"2009" not in data
    assert bytes([7] * 90) not in data, "the label's pixels"
    assert len(data) == source.stat().st_size
    slide = openslide.OpenSlide(made)
    assert set(slide.associated_images) == {"thumbnail"}
    assert (slide.properties["aperio.AppMag"], slide.properties["aperio.User"]) == ("20", "")
    assert slide.properties["openslide.vendor"] == "aperio"
    with TileSource(source) as before, TileSource(made) as after:
        for x in range(4):
            assert after.tile(0, x, 0) == before.tile(0, x, 0)
            assert after.tile(0, x, 0).passthrough


def test_cleaning_again_finds_nothing(tmp_path: Path) -> None:
    made, _ = clean(write_svs(tmp_path / "a.svs"), tmp_path / "out")
    assert made is not None
    again, cleaned = clean(made, tmp_path / "again")
    assert (again, cleaned.removed, cleaned.left) == (None, [], [])


def test_a_slide_without_names_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, picture(), tile=(128, 128), metadata=None, description=None)
    assert clean(path, tmp_path / "out")[0] is None


def test_a_free_description_and_personal_xml_go_and_technical_xml_stays(tmp_path: Path) -> None:
    xml = (
        '<OME Creator="tool"><Experimenter FirstName="Jane" ID="E:0"/>'
        '<Image ID="Image:0"><AcquisitionDate>2020-01-01</AcquisitionDate>'
        '<Pixels SizeX="512" PhysicalSizeX="0.25"/></Image></OME>'
    )
    for name, text, gone, kept in (
        ("free.tif", f"of {SECRET}, ward 3", SECRET, ""),
        ("ome.tif", xml, "Jane", 'PhysicalSizeX="0.25"'),
    ):
        path = tmp_path / name
        tifffile.imwrite(path, picture(), tile=(128, 128), metadata=None, description=text)
        made, _ = clean(path, tmp_path / f"{name}.out")
        assert made is not None
        data = made.read_bytes().decode("latin-1")
        assert gone not in data
        assert "2020" not in data
        assert kept in data
        assert inspect_slide(path=str(made), out_dir=str(tmp_path))["width_px"] == 512


def test_a_converted_slide_keeps_no_property_of_the_scanner(tmp_path: Path) -> None:
    text = (
        "<image><properties><property><name>aperio.User</name>"
        f'<value type="VipsRefString">{SECRET}</value></property><property>'
        '<name>aperio.MPP</name><value type="VipsRefString">0.25</value></property>'
        "</properties></image>"
    )
    path = tmp_path / "v.tif"
    tifffile.imwrite(path, picture(), tile=(128, 128), metadata=None, description=text)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["aperio.User"]
    assert b">0.25<" in made.read_bytes()


@pytest.mark.skipif(not os.environ.get("TESSERA_DATA"), reason="TESSERA_DATA is not set")
@pytest.mark.parametrize(
    "name",
    ["cmu-1-small-region.svs", "tcga-cr-7395.svs", "fluorescence-dapi.ndpi", "her2st-c2.tif"],
)
def test_real_slides_open_as_before(tmp_path: Path, name: str) -> None:
    source = Path(os.environ["TESSERA_DATA"]) / "histology" / "slides" / name
    made, cleaned = clean(source, tmp_path / "out")
    if made is None:
        assert name in ("tcga-cr-7395.svs", "her2st-c2.tif"), "published without names"
        return
    assert cleaned.removed
    before, after = openslide.OpenSlide(source), openslide.OpenSlide(made)
    assert after.level_dimensions == before.level_dimensions
    assert after.properties["openslide.vendor"] == before.properties["openslide.vendor"]
    assert after.properties.get("openslide.mpp-x") == before.properties.get("openslide.mpp-x")
    macro = after.associated_images.get("macro")
    assert macro is None or macro.convert("L").getextrema()[0] > 240, "a white picture"
    assert "label" not in after.associated_images
    at, size = (1000, 1000), (300, 300)
    assert after.read_region(at, 0, size).tobytes() == before.read_region(at, 0, size).tobytes()
