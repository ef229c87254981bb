"""Files that the demo ingests: generated at set-up, and development data if available."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from PIL import Image

from ml.files import replacing
from ml.imaging.samples.slide import make_sample_slide
from ml.imaging.samples.video import make_sample_video
from ml.natural_order import natural_sort

# The demo's three patients: the same real tissue, cut, warped and stained differently.
SAMPLE_SLIDES = ((11, "D-1001", "demo-p1"), (12, "D-1002", "demo-p2"), (13, "D-1003", "demo-p3"))
GLAS_PER_GRADE = {"healthy": 2, "adenomatous": 1, "moderate": 2, "poor": 1}
FETOSCOPY_FPS = 25  # that of the recordings


@dataclass(frozen=True, slots=True)
class DemoFile:
    """A file and the case it goes into.

    Attributes:
        regions: ROIs to draw: ``dab`` (measured), ``image`` (all of it, with ``label``) or none.
    """

    path: Path
    accession: str
    patient_key: str
    organ: str
    procedure: str
    diagnosis: str = ""
    tags: tuple[str, ...] = ()
    by: str = "pathologist"
    regions: str = ""
    label: str = ""
    stain: str = ""


def sample_material(folder: Path) -> Iterator[DemoFile]:
    """Three slides and a video, generated in ``folder`` unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, accession, patient in SAMPLE_SLIDES:
        path = folder / f"colon-ihc-{seed}.tif"
        if not path.exists():
            make_sample_slide(path, seed=seed)
        yield DemoFile(
            path,
            accession,
            patient,
            organ="Colon",
            procedure="Biopsy, IHC (DAB)",
            stain="IHC",
            tags=("demo", "ihc"),
            regions="dab",
        )
    path = folder / "retina-sweep.mp4"
    if not path.exists():
        make_sample_video(path)
    yield DemoFile(
        path,
        "D-2001",
        "demo-p4",
        organ="Eye",
        procedure="Simulated endoscopic sweep",
        tags=("demo",),
        by="endoscopist",
    )


def development_material(folder: Path) -> Iterator[DemoFile]:
    """Real slides, stills and a fetoscopy, where ``TESSERA_DATA`` points at them."""
    root = os.environ.get("TESSERA_DATA")
    if not root:
        return
    data = Path(root)
    yield from _slides(data / "histology" / "slides")
    yield from _glas(data / "histology" / "glas")
    yield from _fetoscopy(data / "endoscopy" / "fetoscopy-anon001" / "frames", folder)


def _slides(slides: Path) -> Iterator[DemoFile]:
    yield DemoFile(
        slides / "cmu-1-small-region.svs",
        "CMU-1",
        "cmu-1",
        organ="Unknown",
        procedure="H&E section",
        stain="H&E",
        tags=("openslide-test-data",),
    )
    for name, accession, patient in (
        ("her2st-c2.tif", "HER2ST-C2", "her2st-c"),
        ("her2st-b-d2.tif", "HER2ST-B-D2", "her2st-b"),
    ):
        yield DemoFile(
            slides / name,
            accession,
            patient,
            organ="Breast",
            procedure="H&E section",
            stain="H&E",
            diagnosis="HER2-positive carcinoma",
            tags=("her2st",),
        )


def _glas(folder: Path) -> Iterator[DemoFile]:
    counts_left = dict(GLAS_PER_GRADE)
    used: set[tuple[str, str]] = set()
    with (folder / "rois.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            grade, patient = row["label"], row["patient"]
            # Different patients within a grade: similar cases leave the same patient out.
            if not counts_left.get(grade) or (grade, patient) in used:
                continue
            used.add((grade, patient))
            counts_left[grade] -= 1
            yield DemoFile(
                folder / row["image"],
                f"GLAS-{Path(row['image']).stem}",
                f"glas-{patient}",
                organ="Colon",
                procedure="H&E still",
                stain="H&E",
                diagnosis=grade.capitalize(),
                tags=("glas",),
                regions="image",
                label=grade.capitalize(),
            )


def _fetoscopy(frames: Path, folder: Path) -> Iterator[DemoFile]:
    path = folder / "fetoscopy-anon001.mp4"
    if not path.exists():
        _encode(natural_sort(frames.glob("*.jpg")), path)
    yield DemoFile(
        path,
        "FETO-001",
        "feto-anon001",
        organ="Placenta",
        procedure="Fetoscopy",
        tags=("fetoscopy",),
        by="endoscopist",
    )


def _encode(images: list[Path], out: Path) -> None:
    """Frames as an h264 video, near lossless; written to a temporary file and renamed."""
    with Image.open(images[0]) as first:
        width, height = first.size
    with replacing(out) as temporary, av.open(str(temporary), "w") as container:
        stream = container.add_stream("libx264", rate=FETOSCOPY_FPS)
        stream.width, stream.height = width, height
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "12"}
        for path in images:
            with Image.open(path) as image:
                rgb = np.asarray(image.convert("RGB"))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())
