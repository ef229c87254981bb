"""The benchmark of a GPU, tried out where there is none."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from ml.index.files.segments import gpu_centroids
from tests.bench.gpu import __main__ as bench
from tests.bench.gpu.__main__ import DOC, main
from tests.bench.gpu.cpu_device import cpu_as_gpu
from tests.bench.gpu.measures import FULL, MEASURES, PROCESSOR, QUICK, VIT_L, Figure
from tests.bench.gpu.report import report

ROWS = """Patches, shipped encoder (patch-cnn)
Patches, shipped encoder (patch-cnn), compiled
Patches of 64 px, ResNet-50
Patches of 64 px, ResNet-50, compiled
Patches of 64 px, ViT-L/16
Patches of 64 px, ViT-L/16, compiled
Matrix product: the peak that shares refer to
Pairs of 576 x 720 px matched
Mosaic of 8 frames
Index of 20,000 vectors: build
Index of 20,000 vectors: search, median
Index of 20,000 vectors: search, half allowed, median"""


@pytest.mark.slow
@pytest.mark.endurance
def test_the_command_fills_every_row_on_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every measure, by the code for a GPU and by the reference; in this process, not in eight."""
    asked: list[tuple[str, str, list[str]]] = []

    def measured(name: str, where: str, options: list[str]) -> dict[str, Figure]:
        asked.append((name, where, options))
        monkeypatch.setenv("TESSERA_DEVICE", where)
        with cpu_as_gpu() if "--stand-in" in options else nullcontext():
            return MEASURES[name](QUICK)

    monkeypatch.setattr(bench, "_measured", measured)
    made: list[type] = []
    real = gpu_centroids.GpuCentroids.__init__
    monkeypatch.setattr(
        gpu_centroids.GpuCentroids, "__init__", lambda *a: [made.append(type(a[0])), real(*a)][1]
    )
    out = tmp_path / "gpu.md"
    assert main(["--stand-in", "--quick", "--out", str(out)]) == 0
    quick, both = ["--quick"], ["--quick", "--stand-in"]
    assert asked == [
        *((name, "cpu", both) for name in MEASURES),
        *((name, "cpu", quick) for name in MEASURES),
    ]
    lines = [line.split(" | ") for line in out.read_text().splitlines() if line[:2] == "| "][1:]
    assert [line[0].removeprefix("| ") for line in lines] == ROWS.splitlines()
    for what, gpu, processors, ratio, share in lines:
        assert float(gpu.split()[0].replace(",", "")) > 0
        assert (processors and ratio.endswith("x")) or "the peak" in what
        assert "%" in share
    assert made == [gpu_centroids.GpuCentroids], "lists are made by the code for a GPU, once"
    assert "`TESSERA_COMPILE=1` " in out.read_text()


def test_published_sizes_are_the_requested_ones() -> None:
    for sizes in (FULL, PROCESSOR):
        assert sizes.vectors == (1_000_000, 10_000_000) and sizes.vit is VIT_L
        assert sizes.vit.input_px == 224 and sizes.frames == 100


@pytest.mark.parametrize("measure", ["index"])
def test_a_measure_runs_on_the_processor(
    measure: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESSERA_DEVICE", "cpu")
    assert main(["--measure", measure, "--quick"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found and all(figure["value"] > 0 for figure in found.values())


def test_without_a_gpu_no_result_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = tmp_path / "gpu.md"
    assert main(["--out", str(out)]) == 1
    assert "not run" in out.read_text()
    out.write_text("measured before")
    assert main(["--out", str(out)]) == 1
    assert out.read_text() == "measured before"


def test_results_of_the_processor_are_not_published() -> None:
    before = DOC.read_text()
    for option in ("--stand-in", "--quick"):
        with pytest.raises(SystemExit):
            main([option])
    assert DOC.read_text() == before


def test_ratios_and_shares_are_worked_out_from_the_figures() -> None:
    gpu = {
        "networks": {
            "Patches": Figure(2_000, "patches/s", operations=1e9),
            "Peak": Figure(10, "products/s", operations=1e12),
        },
        "index": {"Search": Figure(2, "ms", more_is_better=False)},
    }
    processors = {
        "networks": {"Patches": Figure(20, "patches/s", operations=1e9)},
        "index": {"Search": Figure(50, "ms", more_is_better=False)},
    }
    page = report(gpu, processors, device="A GPU")
    assert "10.00 TFLOP/s" in page
    assert "| Patches | 2,000 patches/s | 20.00 patches/s | 100.00x | 20.00% |" in page
    assert "| Search | 2.00 ms | 50.00 ms | 25.00x |  |" in page


def test_the_page_reports_whether_compiling_pays() -> None:
    gpu = {
        "networks": {
            "Patches, shipped encoder (patch-cnn)": Figure(100, "patches/s"),
            "Patches, shipped encoder (patch-cnn), compiled": Figure(130, "patches/s"),
            "Patches of 224 px, ViT-L/16": Figure(40, "patches/s"),
            "Patches of 224 px, ViT-L/16, compiled": Figure(38, "patches/s"),
        }
    }
    page = report(gpu, {}, device="A GPU")
    assert (
        "`TESSERA_COMPILE=1` pays here. Compiled, shipped encoder (patch-cnn) 1.30 times as fast,"
        " Patches of 224 px, ViT-L/16 0.95 times as fast." in page
    )
    assert "COMPILE" not in report({"networks": {}}, {}, device="A GPU")
