"""Blocks of tissue of every kind of source."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.roi.stain.deconvolution import optical_density
from ml.training.roi.patches.blocks import BLOCK_PX, make_block, read_blocks, read_organ_regions
from ml.types import no_progress
from tests.ml.training.roi.conftest import write_block, write_table


@pytest.fixture
def region(tissue):
    return tissue(510, 510, seed=3)


def test_four_tiles_give_the_seamless_region(tmp_path, region):
    write_table(tmp_path / "index.csv", write_block(tmp_path, region, "b", patient="p"))
    ((block,),) = read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress).of_patient
    assert np.array_equal(block.mips[0], region[1:509, 1:509])
    assert [mip.shape for mip in block.mips] == [(s, s, 3) for s in (508, 254, 127, 63)]
    assert block.mpp == 0.5


def test_a_row_without_a_block_is_a_region(tmp_path, region):
    (row, *_) = write_block(tmp_path, region, "b", patient="p")
    pixels = region[:BLOCK_PX, :BLOCK_PX]
    rows = []
    for name in ("88_8", "22_34"):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        rows.append({**row, "file": f"{name}.png", "path": f"{name}.jpeg", "block": ""})
    write_table(tmp_path / "index.csv", rows)
    (blocks,) = read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress).of_patient
    assert len(blocks) == 2
    assert all(np.array_equal(block.mips[0], pixels) for block in blocks)


def test_the_order_of_the_rows_does_not_matter(tmp_path, region):
    rows = write_block(tmp_path, region, "b", patient="p")
    write_table(tmp_path / "index.csv", rows[::-1])
    ((block,),) = read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress).of_patient
    assert np.array_equal(block.mips[0], region[1:509, 1:509])


def test_blocks_are_by_patient_and_only_those_to_train_on(tmp_path, atlas, region):
    training_blocks = read_blocks(atlas.parent, atlas, (), no_progress)
    assert [len(blocks) for blocks in training_blocks.of_patient] == [1, 2, 1] and len(
        training_blocks
    ) == 4
    assert training_blocks.colour.shape == (3, 3, 3) and training_blocks.colour.dtype == np.float32
    rows = write_block(tmp_path, region, "a", patient="p")
    rows += write_block(tmp_path, region, "b", patient="q", use="kept")
    write_table(tmp_path / "index.csv", rows)
    assert len(read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress)) == 1


def test_unknown_microns_are_taken_from_the_level(tmp_path, region):
    rows = []
    for level in ("0", "-1", "-2"):
        rows += write_block(
            tmp_path, region, f"b{level}", patient=f"p{level}", level=level, mpp_est=""
        )
    write_table(tmp_path / "index.csv", rows)
    training_blocks = read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress)
    assert sorted(block.mpp for (block,) in training_blocks.of_patient) == [0.5, 0.8, 1.6]


def test_blocks_that_are_too_coarse_are_left_out(tmp_path, region):
    rows = write_block(tmp_path, region, "fine", patient="p")
    rows += write_block(tmp_path, region, "coarse", patient="q", mpp_est="1.1")
    write_table(tmp_path / "index.csv", rows)
    Image.fromarray(region).save(tmp_path / "slide.png")
    slides = (("slide.png", "r", 0.9), ("slide.png", "s", 1.2))
    training_blocks = read_blocks(
        tmp_path, tmp_path / "index.csv", slides, no_progress, max_mpp=1.0
    )
    assert [block.mpp for (block,) in training_blocks.of_patient] == [0.5, 0.9]


def test_a_block_with_a_tile_cut_short_is_left_out(tmp_path, atlas, region):
    rows = write_block(tmp_path, region, "whole", patient="p")
    rows += write_block(tmp_path, region, "short", patient="p")
    Image.fromarray(region[:256, :180]).save(tmp_path / "short-10.png")
    write_table(tmp_path / "index.csv", rows)
    assert len(read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress)) == 1


def test_cells_are_on_tissue(tissue):
    half = np.full((508, 508, 3), 250, np.uint8)
    half[:, :254] = tissue(508, 254)
    block = make_block(half, 0.5)
    assert len(block.cells) == 16 * 8 and block.cells[:, 0].max() == 7
    assert block.cells.dtype == np.int64


def test_pale_tissue_counts_and_grey_glass_does_not(tissue):
    pale = (255 - (255 - tissue(508, 508).astype(float)) * 0.5).astype(np.uint8)
    assert (optical_density(pale).mean(axis=2) > 0.12).mean() < 0.25
    assert make_block(pale, 0.5) is not None
    grey = np.full((508, 508, 3), 228, np.uint8)
    assert make_block(grey, 0.5) is None


def test_thin_strands_of_tissue_have_their_densest_cell():
    lines = np.full((508, 508, 3), 250, np.uint8)
    lines[::3] = 40
    block = make_block(lines, 0.5)
    assert block.cells.shape == (1, 2)


def test_blank_glass_gives_no_blocks():
    assert make_block(np.full((508, 508, 3), 245, np.uint8), 0.5) is None


@pytest.mark.slow
def test_slides_are_cut_at_native_and_half_scale(tmp_path, tissue):
    Image.fromarray(tissue(1016, 1524)).save(tmp_path / "slide.png")
    training_blocks = read_blocks(tmp_path, None, (("slide.png", "p", 0.6),), no_progress)
    sizes = sorted(block.mpp for block in training_blocks.of_patient[0])
    assert sizes == [0.6] * 6 + [1.2]
    assert all(
        block.mips[0].shape == (BLOCK_PX, BLOCK_PX, 3) for block in training_blocks.of_patient[0]
    )


def test_a_folder_gives_every_image_and_small_ones_uncut(tmp_path, tissue):
    (tmp_path / "more").mkdir()
    for number in range(2):
        Image.fromarray(tissue(300, 300, seed=number)).save(tmp_path / "more" / f"{number}.png")
    (tmp_path / "more" / "notes.txt").touch()
    training_blocks = read_blocks(tmp_path, None, (("more", "p", 0.8),), no_progress)
    assert [block.mips[0].shape for block in training_blocks.of_patient[0]] == [(300, 300, 3)] * 2


def test_colour_is_the_root_of_the_second_moment(tmp_path):
    pixels = np.full((508, 508, 3), (120, 60, 130), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    training_blocks = read_blocks(tmp_path, None, (("one.png", "p", 0.5),), no_progress)
    od = optical_density(pixels[:1, :1])[0, 0].astype(np.float64)
    assert np.allclose(
        training_blocks.colour[0] @ training_blocks.colour[0], np.outer(od, od), atol=1e-3
    )


def test_missing_sources_are_named_in_one_line(tmp_path):
    with pytest.raises(BadInputError, match=r"index\.csv"):
        read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress)
    with pytest.raises(BadInputError, match=r"'none\.svs'"):
        read_blocks(tmp_path, None, (("none.svs", "p", 0.5),), no_progress)
    (tmp_path / "index.csv").write_text("file,patient\na.png,p\n")
    with pytest.raises(BadInputError, match=r"index\.csv: .*'block'"):
        read_blocks(tmp_path, tmp_path / "index.csv", (), no_progress)


def test_sources_without_tissue_raise_an_error(tmp_path):
    Image.fromarray(np.full((600, 600, 3), 255, np.uint8)).save(tmp_path / "white.png")
    with pytest.raises(BadInputError, match="tissue"):
        read_blocks(tmp_path, None, (("white.png", "p", 0.5),), no_progress)


def test_regions_of_an_organ_need_two_patients_its_name_stain_and_scale(tmp_path, region):
    columns = {"stain": "H&E", "slide": "s", "organ": "colon", "mpp_est": "1.0"}

    def block(name, patient, **values):
        return write_block(tmp_path, region, name, patient=patient, **{**columns, **values})

    rows = [*block("a", "p"), *block("b", "q", slide="t")]
    rows += (
        block("c", "q", organ="colon?") + block("d", "q", stain="CK") + block("e", "q", organ="")
    )
    rows += block("f", "q", mpp_est="0.25") + block("g", "r", organ="liver")
    with (tmp_path / "index.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    items = list(
        read_organ_regions(
            tmp_path / "index.csv", use="train", stain="H&E", mpp=(0.5, 2.0), progress=no_progress
        )
    )
    assert [(item.patient, item.slide, item.organ, item.mpp) for item in items] == [
        ("p", "s", "colon", 1.0),
        ("q", "t", "colon", 1.0),
    ]
    assert np.array_equal(items[0].pixels, region[1:509, 1:509])
