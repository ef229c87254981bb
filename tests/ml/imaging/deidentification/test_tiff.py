"""Slides in TIFF: names gone, tiles where they were."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import openslide
import pytest
import tifffile

from ml.errors import CorruptFileError
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.deidentification.tiff import clean_tiff
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from tests.ml.imaging.deidentification.support import SECRET, clean, write_svs
from tests.ml.imaging.labels import HIDDEN, LEVELS, TILES, halved, label, tissue, write_with_label
from tests.ml.imaging.multi_file import picture


@pytest.mark.parametrize("bigtiff", [False, True])
def test_names_label_and_macro_are_removed_from_an_aperio_slide_and_tiles_unchanged(
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


def test_cleaning_twice_removes_nothing_more(tmp_path: Path) -> None:
    made, _ = clean(write_svs(tmp_path / "a.svs"), tmp_path / "out")
    assert made is not None
    again, cleaned = clean(made, tmp_path / "again")
    assert (again, cleaned.removed, cleaned.left) == (None, [], [])


def test_a_slide_without_names_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, picture(), tile=(128, 128), metadata=None, description=None)
    assert clean(path, tmp_path / "out")[0] is None


def test_descriptions_and_personal_xml_are_removed_and_technical_xml_kept(tmp_path: Path) -> None:
    xml = (
        '<OME Creator="tool"><Experimenter FirstName="Jane" ID="E:0"/>'
        f'<Image ID="Image:0" Name="{SECRET}.svs"><AcquisitionDate>2020-01-01</AcquisitionDate>'
        '<Pixels SizeX="512" PhysicalSizeX="0.25"/></Image></OME>'
    )
    for name, text, gone, technical in (
        ("free.tif", f"of {SECRET}, ward 3", SECRET, ""),
        ("ome.tif", xml, "Jane", 'PhysicalSizeX="0.25"'),
    ):
        path = tmp_path / name
        tifffile.imwrite(path, picture(), tile=(128, 128), metadata=None, description=text)
        made, _ = clean(path, tmp_path / f"{name}.out")
        assert made is not None
        data = made.read_bytes().decode("latin-1")
        assert gone not in data
        assert SECRET not in data
        assert "2020" not in data
        assert technical in data
        assert inspect_slide(path=str(made), out_dir=str(tmp_path))["width_px"] == 512


def test_a_converted_slide_has_no_property_of_the_scanner(tmp_path: Path) -> None:
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


Entry = tuple[int, int, int | bytes]


class _Tiff:
    """A classic TIFF written by hand, with directories at any position."""

    def __init__(self) -> None:
        self.data = bytearray(b"II*\0" + bytes(4))
        first = self.directory(
            [(256, 4, 2), (257, 4, 2), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, b"\1\2\3\4"),
             (277, 3, 1), (278, 4, 2), (279, 4, 4), (330, 4, 0), (34665, 4, 0), (34853, 4, 0)]
        )  # fmt: skip
        self.data[4:8] = struct.pack("<I", first)
        self.first = first

    def directory(self, entries: list[Entry], following: int = 0) -> int:
        """Write a directory and return its offset; values that are bytes follow it."""
        at = len(self.data)
        behind = at + 2 + 12 * len(entries) + 4
        values, entries_data = b"", struct.pack("<H", len(entries))
        for tag, kind, value in entries:
            place, count = value, 1
            if isinstance(value, bytes):
                place, count = behind + len(values), 1 if kind == 4 else len(value)
                values += value + b"\0" * (len(value) % 2)
            entries_data += struct.pack("<HHII", tag, kind, count, int(place))
        self.data += entries_data + struct.pack("<I", following) + values
        return at

    def lead(self, tag: int, offset: int) -> None:
        """Let a field of the first directory lead somewhere."""
        at = self.data.index(struct.pack("<HHI", tag, 4, 1), self.first)
        self.data[at + 8 : at + 12] = struct.pack("<I", offset)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data)
        return path


_TEXT = SECRET.encode() + b"\0"


@pytest.mark.parametrize("pointer", [330, 34665])
@pytest.mark.parametrize("further", [330, 34665, 34853, 40965, 0])
def test_names_are_removed_from_nested_directories(
    tmp_path: Path, pointer: int, further: int
) -> None:
    tiff = _Tiff()
    deepest = tiff.directory([(315, 2, _TEXT), (37510, 7, b"ASCII\0\0\0" + _TEXT)])
    more: list[Entry] = [(further, 4, deepest)] if further else []
    middle = tiff.directory(
        [(306, 2, b"2009:12:29 09:59:15\0"), (315, 2, _TEXT), *more],
        following=0 if further else deepest,
    )
    tiff.lead(pointer, middle)
    path = tiff.write(tmp_path / "a.tif")
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    deep = ["GPS position"] if further == 34853 else ["UserComment"]
    assert cleaned.removed == sorted(["Artist", "DateTime", *deep])
    data = made.read_bytes()
    assert SECRET.encode() not in data
    assert b"2009" not in data
    assert (tifffile.imread(made) == tifffile.imread(path)).all()
    assert clean(made, tmp_path / "again")[0] is None


def test_names_are_removed_from_referenced_bytes_and_texts_of_any_count(
    tmp_path: Path,
) -> None:
    tiff = _Tiff()
    deepest = tiff.directory([(315, 2, _TEXT), (65_000, 2, _TEXT), (271, 2, b"Maker\0")])
    tiff.lead(34853, tiff.directory([(2, 7, _TEXT), (330, 4, deepest)]))
    made, cleaned = clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["Artist", "GPS position", "TIFF tag 65000"]
    assert SECRET.encode() not in made.read_bytes()
    assert b"Maker" in made.read_bytes()


def test_every_occurrence_of_a_field_is_cleaned(tmp_path: Path) -> None:
    tiff = _Tiff()
    tiff.lead(330, tiff.directory([(315, 2, _TEXT), (315, 2, b"x\0")]))
    made, cleaned = clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["Artist"]
    assert SECRET.encode() not in made.read_bytes()


def test_directories_that_lead_to_each_other_are_cleaned_once(tmp_path: Path) -> None:
    tiff = _Tiff()
    inner = tiff.directory([(315, 2, _TEXT), (330, 4, len(tiff.data)), (34665, 4, tiff.first)])
    tiff.lead(330, inner)
    made, cleaned = clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["Artist"]
    assert SECRET.encode() not in made.read_bytes()


def test_a_directory_that_leads_to_too_many_is_refused(tmp_path: Path) -> None:
    tiff = _Tiff()
    following = 0
    for _ in range(4_100):
        following = tiff.directory([(315, 2, _TEXT)], following=following)
    tiff.lead(330, following)
    with pytest.raises(CorruptFileError):
        clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")


def test_an_overlong_chain_is_refused_without_partial_cleaning(tmp_path: Path) -> None:
    tiff = _Tiff()
    following = 0
    for _ in range(4_100):
        following = tiff.directory([(256, 4, 1), (315, 2, _TEXT)], following=following)
    at = tiff.first + 2 + 12 * 12
    tiff.data[at : at + 4] = struct.pack("<I", following)
    with pytest.raises(CorruptFileError, match="4,096"):
        clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")


@pytest.mark.skipif(not os.environ.get("TESSERA_DATA"), reason="TESSERA_DATA is not set")
@pytest.mark.parametrize(
    "name",
    ["cmu-1-small-region.svs", "tcga-cr-7395.svs", "fluorescence-dapi.ndpi", "her2st-c2.tif"],
)
def test_real_slides_open_after_cleaning(tmp_path: Path, name: str) -> None:
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


def test_the_macro_of_an_ndpi_beyond_four_gibibytes_is_overwritten_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.ndpi"
    low, high = 4096, 2**32 + 4096
    lens = struct.unpack("<I", struct.pack("<f", -1.0))[0]
    fields = [
        (256, 4, 20, 0), (257, 4, 10, 0), (259, 3, 1, 0), (273, 4, low, 1), (279, 4, 100, 0),
        (65420, 4, 1, 0), (65421, 11, lens, 0),
    ]  # fmt: skip
    at = 2**32 + 8192
    body = struct.pack("<H", len(fields))
    body += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value, _ in fields)
    body += bytes(8) + struct.pack(f"<{len(fields)}I", *(upper for *_, upper in fields))
    with path.open("wb") as file:
        file.write(b"II*\0" + struct.pack("<Q", at))
        for place, data in ((low, b"T" * 100), (high, b"M" * 100), (at, body)):
            file.seek(place)
            file.write(data)
    cleaned = DeidentificationResult()
    clean_tiff(path, cleaned)
    assert cleaned.removed == ["macro image"]
    with path.open("rb") as file:
        assert [os.pread(file.fileno(), 100, place) for place in (low, high)] == [
            b"T" * 100,
            bytes(100),
        ]


@pytest.mark.parametrize("how", HIDDEN)
@pytest.mark.parametrize(("byteorder", "bigtiff"), [("<", False), (">", False), ("<", True)])
def test_a_hidden_label_is_removed_and_named(
    tmp_path: Path, how: str, byteorder: str, bigtiff: bool
) -> None:
    path = write_with_label(tmp_path / "a.tif", how, byteorder=byteorder, bigtiff=bigtiff)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert [name for name in cleaned.removed if name.endswith(" image")] == cleaned.removed[:1]
    with tifffile.TiffFile(made) as tiff:
        images = [directory for page in tiff.pages for directory in (page, *(page.pages or ()))]
        assert all(image.asarray().min() < 200 for image in images if image.dataoffsets[0])
        assert len([image for image in images if image.dataoffsets[0]]) == len(LEVELS)
    with open_slide(made) as slide:
        assert [(image.width_px, image.height_px) for image in slide.stored] == LEVELS
        small = slide.thumbnail(384)
    with open_slide(path) as slide:
        assert (small == slide.thumbnail(384)).all()
    assert clean(made, tmp_path / "again")[0] is None


def test_label_and_macro_are_recognised_by_ome_xml(tmp_path: Path) -> None:
    path = tmp_path / "a.ome.tif"
    with tifffile.TiffWriter(path, ome=True) as tiff:
        options = TILES | {"metadata": None}
        for name, image in (("Label image", label(320, 360)), ("macro", label(600, 200))):
            tiff.write(image, **options | {"metadata": {"axes": "YXS", "Name": name}})
        tiff.write(tissue(), subifds=1, **options | {"metadata": {"axes": "YXS", "Name": "scan"}})
        tiff.write(halved(tissue()), subfiletype=1, **options)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert {"label image", "macro image"} <= set(cleaned.removed)
    with open_slide(made) as slide:
        assert [(directory.width_px, directory.height_px) for directory in slide.stored] == LEVELS[
            :2
        ]


def test_tiles_shared_by_a_label_and_a_level_are_kept(tmp_path: Path) -> None:
    from ml.imaging.formats.tiff import read_directories

    path = write_with_label(tmp_path / "a.tif", "reduced")
    level, hidden = (read_directories(path)[page] for page in (2, 3))
    data = bytearray(path.read_bytes())
    shared, offset = (struct.pack("<I", int(directory.offsets[0])) for directory in (level, hidden))
    at = (
        data.index(offset, hidden.offset) if offset in data[hidden.offset :] else data.index(offset)
    )
    data[at : at + 4] = shared
    path.write_bytes(data)
    made, _ = clean(path, tmp_path / "out")
    assert made is not None
    with open_slide(path) as before, open_slide(made) as after:
        assert (
            before.read_level(2, (0, 0), (384, 256)) == after.read_level(2, (0, 0), (384, 256))
        ).all()


def test_a_label_in_a_directory_within_a_directory_is_removed(tmp_path: Path) -> None:
    tiff = _Tiff()
    pixels = bytes(range(200, 216))
    deepest = tiff.directory([(256, 4, 4), (257, 4, 4), (258, 3, 8), (273, 4, 0), (279, 4, 16)])
    at = len(tiff.data)
    tiff.data += pixels
    entry = tiff.data.index(struct.pack("<HHI", 273, 4, 1), deepest)
    tiff.data[entry + 8 : entry + 12] = struct.pack("<I", at)
    tiff.lead(330, tiff.directory([(271, 2, b"Maker\0"), (330, 4, deepest)]))
    made, cleaned = clean(tiff.write(tmp_path / "a.tif"), tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["4 x 4 px image"]
    assert pixels not in made.read_bytes()


def test_pages_of_a_stack_are_kept_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for _ in range(3):
            tiff.write(tissue(), **TILES)
    made, cleaned = clean(path, tmp_path / "out")
    assert (made, cleaned.removed) == (None, [])
    (left,) = cleaned.left
    assert "(2)" in left
    planes = np.zeros((3, 256, 256), np.uint8)
    tifffile.imwrite(
        tmp_path / "b.tif", planes, ome=True, metadata={"axes": "CYX"}, tile=(128, 128)
    )
    assert clean(tmp_path / "b.tif", tmp_path / "planes")[1].left == []


def _write_scn(path: Path) -> Path:
    """Write a file like Leica's scanners: the whole glass in pages 0 and 1, then the scan."""

    def image(first: int, sizes: list[tuple[int, int]], view: str, objective: str) -> str:
        dimensions = "".join(
            f'<dimension sizeX="{w}" sizeY="{h}" r="{at}" ifd="{first + at}"/>'
            for at, (w, h) in enumerate(sizes)
        )
        w, h = sizes[0]
        return (
            f'<image name="i{first}"><creationDate>2012-10-25T11:08:21.9Z</creationDate>'
            f'<device model="Leica SCN400"/><pixels sizeX="{w}" sizeY="{h}">{dimensions}</pixels>'
            f"<view {view}/><scanSettings><objectiveSettings><objective>{objective}</objective>"
            "</objectiveSettings><illuminationSettings><illuminationSource>brightfield"
            "</illuminationSource></illuminationSettings></scanSettings></image>"
        )

    collection_size = 'sizeX="2400000" sizeY="800000" offsetX="0" offsetY="0"'
    part = 'sizeX="768000" sizeY="512000" offsetX="100000" offsetY="100000"'
    entries_data = (
        '<?xml version="1.0"?>'
        '<scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01">'
        '<collection name="c" sizeX="2400000" sizeY="800000"><barcode/>'
        f"{image(0, [(600, 200), (300, 100)], collection_size, '0.6')}"
        f"{image(2, LEVELS, part, '20')}</collection></scn>"
    )
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        options = TILES | {"compression": "jpeg"}
        tiff.write(label(600, 200), description=entries_data, **options)
        tiff.write(halved(label(600, 200)), **options)
        for times in range(3):
            tiff.write(halved(tissue(), times) if times else tissue(), **options)
    return path


def test_the_macro_of_an_scn_is_blanked(tmp_path: Path) -> None:
    path = _write_scn(tmp_path / "a.scn")
    assert openslide.OpenSlide.detect_format(path) == "leica"
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert "macro image" in cleaned.removed
    with tifffile.TiffFile(made) as tiff:
        assert [any(page.dataoffsets) for page in tiff.pages] == [False] * 2 + [True] * 3
    with open_slide(path) as before, open_slide(made) as after:
        assert after.info == before.info
        assert (after.thumbnail(300) == before.thumbnail(300)).all()
    assert "macro image" not in clean(made, tmp_path / "again")[1].removed
