"""OME-XML in a TIFF: pages, names and pixel sizes of its images."""

from __future__ import annotations

import pytest

from ml.imaging.formats.ome import ome_images

_HEAD = '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'


def _pixels(unit: str = "", data: str = '<TiffData IFD="0" PlaneCount="1"/>') -> str:
    return f'<Pixels SizeX="640" SizeY="480" SizeZ="1" SizeC="3" SizeT="1" {unit}>{data}</Pixels>'


@pytest.mark.parametrize(
    ("unit", "um"),
    [
        ('PhysicalSizeX="0.5"', 0.5),
        ('PhysicalSizeX="0.5" PhysicalSizeXUnit="µm"', 0.5),
        ('PhysicalSizeX="0.5" PhysicalSizeXUnit="μm"', 0.5),
        ('PhysicalSizeX="500" PhysicalSizeXUnit="nm"', 0.5),
        ('PhysicalSizeX="0.0005" PhysicalSizeXUnit="mm"', 0.5),
        ('PhysicalSizeX="5e-7" PhysicalSizeXUnit="m"', 0.5),
        ('PhysicalSizeX="5000" PhysicalSizeXUnit="Å"', 0.5),
        ('PhysicalSizeX="0.5" PhysicalSizeXUnit="pixel"', None),
        ('PhysicalSizeX="0.5" PhysicalSizeXUnit="reference frame"', None),
        ('PhysicalSizeX="nan"', None),
        ('PhysicalSizeX="-1"', None),
        ("", None),
    ],
)
def test_a_pixel_size_is_read_in_its_unit(unit: str, um: float | None) -> None:
    (image,) = ome_images(f'{_HEAD}<Image Name="a">{_pixels(unit)}</Image></OME>')
    assert image.mpp[0] == (None if um is None else pytest.approx(um))
    assert image.mpp[1] is None


def test_each_image_has_its_name_size_and_pages() -> None:
    two = _pixels(data='<TiffData IFD="1"/><TiffData IFD="4"/>')
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>{_HEAD}'
        f'<Image Name="macro">{_pixels()}</Image>'
        f'<Image Name="scan">{two}</Image></OME>'
    )
    macro, scan = ome_images(text)
    assert (macro.name, macro.pages, macro.size_px) == ("macro", {0}, (640, 480))
    assert (scan.name, scan.pages) == ("scan", {1, 4})


def test_an_image_without_a_list_of_pages_has_them_all() -> None:
    (image,) = ome_images(f"{_HEAD}<Image>{_pixels(data='<TiffData/>')}</Image></OME>")
    assert image.pages == {0, 1, 2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Aperio Image Library",
        "<OME",
        "<image><properties/></image>",
        '<!DOCTYPE OME [<!ENTITY a "b">]><OME><Image><Pixels/></Image></OME>',
        "<OME><Image/></OME>",
    ],
)
def test_invalid_ome_xml_describes_no_image(text: str) -> None:
    assert ome_images(text) == ()


def test_a_count_of_pages_is_bounded_by_the_planes() -> None:
    tiff_data = '<TiffData IFD="0" PlaneCount="999999"/>'
    (image,) = ome_images(f"{_HEAD}<Image>{_pixels(data=tiff_data)}</Image></OME>")
    assert len(image.pages) == 3
