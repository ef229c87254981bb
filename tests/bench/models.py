"""ROI to embedding: what the workers do for a region."""

from __future__ import annotations

from pathlib import Path

from shapely.geometry import box

from ml.imaging.slides.slide import open_slide
from ml.roi import load_encoder
from tests.bench.measure import Row, Section, each, median_ms
from tests.bench.roi_sizes import in_a_process

ROI_PX = 2_000
ROI_SIDES_PX = (500, 2_000, 10_000, 40_000)


def roi_to_embedding(slide_path: Path) -> Section:
    """A 2,000 x 2,000 px ROI, from the file to the vector; against only reading its pixels."""
    encoder = load_encoder("default")
    corners = [(600, 600), (2_600, 1_200), (1_400, 2_400)]
    with open_slide(slide_path) as slide:

        def embed(corner: tuple[int, int]) -> None:
            x, y = corner
            encoder.embed_region(slide, box(x, y, x + ROI_PX, y + ROI_PX))

        def read(corner: tuple[int, int]) -> None:
            slide.read_scaled(xy_l0=corner, size_l0=(ROI_PX, ROI_PX), downsample=1.0)

        embed(corners[0])
        seconds, reading = each(embed, corners), each(read, corners)
    return Section(
        "ROI to embedding",
        "Patches read from the file, their features and their mean; on this machine's processors.",
        [
            Row(
                f"{ROI_PX} x {ROI_PX} px ROI",
                median_ms(seconds) / 1e3,
                "s",
                "reading the ROI's pixels, nothing else",
                median_ms(reading) / median_ms(seconds),
                "under 1 s on 2 cores",
            )
        ],
    )


def roi_sizes(slide_path: Path) -> Section:
    """ROIs of growing size, each in a process of its own; against ResNet-50 on the same patches."""
    rows = []
    for side_px in ROI_SIDES_PX:
        measured_s = in_a_process(slide_path, side_px)
        ratio = measured_s["resnet_seconds"] / measured_s["seconds"]
        against = "mean of ResNet-50 over the same patches, reading included"
        name = f"{side_px:,} x {side_px:,} px ROI"
        patches = int(measured_s["patches"])
        rows += [
            Row(name, measured_s["seconds"], "s", against, ratio),
            Row(f"{name}: patches", patches / measured_s["seconds"], "patches/s"),
            Row(
                f"{name}: peak memory, {patches} patches at density {measured_s['density']:.2f}",
                measured_s["peak_mib"],
                "MiB",
                budget="a worker under 4 GiB",
            ),
            Row(f"{name}: memory above that of a tiny ROI", measured_s["grown_mib"], "MiB"),
        ]
    return Section(
        "ROI to embedding by size",
        "A virtual slide of real JPEG tiles, 44,000 px a side, 0.5 um per pixel. ResNet-50 has "
        "random weights; it is timed on at most 16 of the patches and scaled to all of them.",
        rows,
    )
