"""Glands outlined from one click: ``python -m tests.bench.outlines``.

``--write`` puts it into the report. The images are GlaS's (``TESSERA_DATA``), which come without
the masks of its authors: ``glands.csv`` holds outlines of 39 glands that we drew on them by hand.
Where the folder has the authors' own (``NAME_anno.bmp``), those are taken. Each gland is clicked in
its middle and at two random places.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from shapely import from_wkt

from ml.segmentation.propose import propose_outline
from ml.types import ArrayBool, ImageU8
from tests.bench import report
from tests.bench.measure import Row, Section, each, median_ms, p95_ms

TITLE = "Outlines from a click"
GLANDS = Path(__file__).with_name("glands.csv")
CHOSEN_ON = {"testA_35", "train_84", "train_2", "testB_5"}
"""Images that the settings of ``OutlineConfig`` and of the alternatives were chosen on."""
OTHER_CLICKS = 2  # in addition to the one in the middle
TOLERANCES = (12, 24, 36, 48, 64, 90)  # of the wand: from a press to a drag over a hand's breadth
RADII_PX = (80, 110, 140)  # of the disc, around the sizes of these glands
SURE = 0.2  # of the disc's radius: what GrabCut may not take away
ROUNDS = 3  # of GrabCut; more change little

Click = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Gland:
    """A gland, and where it is clicked: its middle first."""

    image_name: str
    image: ImageU8
    mask: ArrayBool
    clicks: list[Click]


def glands(folder: Path) -> Iterator[Gland]:
    """Every gland that is outlined."""
    with GLANDS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name in sorted({row["image"] for row in rows}):
        image = np.asarray(Image.open(folder / f"{name}.jpg").convert("RGB"))
        theirs = folder / f"{name}_anno.bmp"
        if theirs.exists():
            array = np.asarray(Image.open(theirs))
            masks = [array == number for number in np.unique(array[array > 0])]
        else:
            drawn = [from_wkt(row["geometry"]) for row in rows if row["image"] == name]
            masks = [filled(np.asarray(roi.boundary.coords), image) for roi in drawn]
        for number, mask in enumerate(masks):
            yield Gland(name, image, mask, _clicks(mask, number))


def _clicks(mask: ArrayBool, seed: int) -> list[Click]:
    depth = cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1]
    y, x = np.unravel_index(depth.argmax(), depth.shape)
    ys, xs = np.nonzero(depth > depth.max() / 3)  # within, as a person clicks
    chosen = np.random.default_rng(seed).choice(len(xs), OTHER_CLICKS, replace=False)
    return [(int(x), int(y)), *((int(xs[choice]), int(ys[choice])) for choice in chosen)]


def filled(ring: np.ndarray, image: ImageU8) -> ArrayBool:
    """The pixels inside of a ring (N, 2)."""
    mask = np.zeros(image.shape[:2], np.uint8)
    cv2.fillPoly(mask, [np.round(ring).astype(np.int32)], 1)
    return mask > 0


def dice(a: ArrayBool, b: ArrayBool) -> float:
    """Twice what both hold, over what each holds."""
    return float(2 * (a & b).sum() / max(1, a.sum() + b.sum()))


def ours(gland: Gland, click: Click) -> ArrayBool:
    """The ring that is shown first."""
    proposal = propose_outline(gland.image, (float(click[0]), float(click[1])))
    return filled(proposal.rings[proposal.likely], gland.image)


def ours_best(gland: Gland, click: Click) -> ArrayBool:
    """The best of the rings, as the slider offers them."""
    proposal = propose_outline(gland.image, (float(click[0]), float(click[1])))
    masks = [filled(ring, gland.image) for ring in proposal.rings]
    return max(masks, key=lambda mask: dice(mask, gland.mask))


def wand(tolerance: int) -> Callable[[Gland, Click], ArrayBool]:
    """Select like the viewer: connected pixels within a distance in RGB, holes filled."""

    def taken(gland: Gland, click: Click) -> ArrayBool:
        x, y = click
        seed = gland.image[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].reshape(-1, 3).mean(axis=0)
        like = np.linalg.norm(gland.image - seed, axis=2) <= tolerance
        like[y, x] = True
        _, pieces = cv2.connectedComponents(like.astype(np.uint8), connectivity=4)
        piece = (pieces == pieces[y, x]).astype(np.uint8)
        rings, _ = cv2.findContours(piece, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        cv2.drawContours(piece, rings, -1, 1, -1)
        return piece > 0

    return taken


def disc(radius_px: int) -> Callable[[Gland, Click], ArrayBool]:
    """A circle around the click: what a method must beat to have seen anything."""

    def drawn(gland: Gland, click: Click) -> ArrayBool:
        mask = np.zeros(gland.mask.shape, np.uint8)
        return cv2.circle(mask, click, radius_px, 1, -1) > 0

    return drawn


def grab_cut(radius_px: int) -> Callable[[Gland, Click], ArrayBool]:
    """OpenCV's GrabCut: within a disc perhaps, in its middle surely."""

    def cut(gland: Gland, click: Click) -> ArrayBool:
        mask = np.full(gland.mask.shape, cv2.GC_BGD, np.uint8)
        cv2.circle(mask, click, radius_px, cv2.GC_PR_FGD, -1)
        cv2.circle(mask, click, round(SURE * radius_px), cv2.GC_FGD, -1)
        models = np.zeros((1, 65)), np.zeros((1, 65))  # as OpenCV wants them
        cv2.setRNGSeed(0)
        cv2.grabCut(gland.image, mask, None, *models, ROUNDS, cv2.GC_INIT_WITH_MASK)
        return (mask == cv2.GC_FGD) | (mask == cv2.GC_PR_FGD)

    return cut


def scores(
    method: Callable[[Gland, Click], ArrayBool], of: list[Gland], clicks: slice = slice(None)
) -> np.ndarray:
    """(N,) Dice of every gland and click."""
    return np.array(
        [dice(method(gland, click), gland.mask) for gland in of for click in gland.clicks[clicks]]
    )


def _best(
    make: Callable[[int], Callable[[Gland, Click], ArrayBool]],
    values: tuple[int, ...],
    of: list[Gland],
) -> int:
    return max(values, key=lambda value: scores(make(value), of, slice(1)).mean())


def outlines_from_clicks(folder: Path) -> Section:
    """Dice of proposals against what is at hand, on images that nothing was chosen on."""
    everything = list(glands(folder))
    chosen_on = [item for item in everything if item.image_name in CHOSEN_ON]
    tested = [item for item in everything if item.image_name not in CHOSEN_ON]
    images = {item.image_name for item in tested}
    section = Section(
        TITLE,
        f"{len(tested)} glands on {len(images)} GlaS images outlined by"
        " hand, each from a click in its middle and two elsewhere in it; Dice of the proposal"
        " with the drawn outline. Settings of every method were chosen on"
        f" {len(chosen_on)} glands of {len(CHOSEN_ON)} other images.",
    )
    scores_by_outline = scores(ours, tested)
    for name, make, values in (
        ("the wand (region growing, holes filled), tolerance {}", wand, TOLERANCES),
        ("OpenCV GrabCut in a disc of {} px", grab_cut, RADII_PX),
        ("a disc of {} px", disc, RADII_PX),
    ):
        value = _best(make, values, chosen_on)
        theirs = scores(make(value), tested)
        against = f"{name.format(value)}: {theirs.mean():.2f}, median {np.median(theirs):.2f}"
        section.rows.append(_row("proposal, all clicks", scores_by_outline, against, theirs))
    section.rows.append(_row("proposal, middle clicks", scores(ours, tested, slice(1))))
    section.rows.append(_row("proposal, other clicks", scores(ours, tested, slice(1, None))))
    section.rows.append(_row("best setting of the slider, all clicks", scores(ours_best, tested)))
    clicks = [(gland, click) for gland in tested for click in gland.clicks]
    seconds = each(lambda item: ours(*item), clicks)
    section.rows.append(
        Row(
            f"time of a proposal, median (p95 {p95_ms(seconds):.0f} ms)",
            median_ms(seconds),
            "ms",
            budget="about a second, reading included",
        )
    )
    return section


def _row(what: str, found: np.ndarray, against: str = "", theirs: np.ndarray | None = None) -> Row:
    ratio = None if theirs is None else float(found.mean() / theirs.mean())
    missed = int((found < 0.5).sum())  # not even half of it: to be drawn by hand
    title = f"{what}: mean (median {np.median(found):.2f}; below 0.5: {missed} of {len(found)})"
    return Row(title, float(found.mean()), "Dice", against, ratio)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    data = os.environ.get("TESSERA_DATA")
    folder = Path(data or ".") / "histology" / "glas"
    if not folder.is_dir():
        print("Set TESSERA_DATA to the folder with the development data.", file=sys.stderr)
        return 2
    section = outlines_from_clicks(folder)
    report.tell(section, after="ROI to embedding by size", write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
