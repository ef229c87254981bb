"""The benchmark of a GPU, tried out where there is none."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from ml.index.files.segments import gpu_centroids
from tests.bench.gpu import __main__ as bench
from tests.bench.gpu import all_steps
from tests.bench.gpu.__main__ import DOC, main
from tests.bench.gpu.cpu_device import cpu_as_gpu
from tests.bench.gpu.measures import FULL, MEASURES, PROCESSOR, QUICK, VIT_L, Figure
from tests.bench.gpu.report import report
from tests.bench.gpu.wheels import cut, pinned

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
    requested: list[tuple[str, str, list[str]]] = []

    def measured(name: str, where: str, options: list[str]) -> dict[str, Figure]:
        requested.append((name, where, options))
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
    assert requested == [
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
    data = json.loads(capsys.readouterr().out)
    assert data and all(figure["value"] > 0 for figure in data.values())


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


@pytest.mark.endurance
def test_one_call_runs_tests_and_measures_and_lists_missing_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    stub = tmp_path / "stub.py"
    stub.write_text("def test_one():\n    assert True\n")
    real = all_steps.Call.step

    def step(
        self: all_steps.Call, name: str, command: list[str], limit_s: float, **more: str
    ) -> object:
        hangs = [sys.executable, "-c", "import time; time.sleep(60)"]
        is_slow = name == "index on processors"
        return real(self, name, hangs if is_slow else command, 2 if is_slow else limit_s, **more)

    monkeypatch.setattr(all_steps.Call, "step", step)
    none = tmp_path / "wheels"
    options = ["--stand-in", "--quick", "--only", "index", "--tests", str(stub), "--wheels"]
    options.append(str(none))
    assert all_steps.main(options) == 1
    out = tmp_path / "out"
    assert "1 passed" in (out / "tests.txt").read_text()
    assert json.loads((out / "facts.json").read_text())["torch"]
    page = (out / "benchmarks-gpu.md").read_text()
    assert "Index of 20,000 vectors: build" in page
    assert page.endswith("Not measured: index on processors.\n")
    figures = json.loads((out / "figures.json").read_text())
    assert figures["gpu"]["index"] and not figures["processors"]
    assert "index on processors: 2." in (out / "log.txt").read_text()


def test_one_call_without_a_folder_or_without_time_claims_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OUT", raising=False)
    with pytest.raises(SystemExit):
        all_steps.main([])
    monkeypatch.setenv("OUT", str(tmp_path))
    assert all_steps.main(["--seconds", "0"]) == 1
    assert not (tmp_path / "benchmarks-gpu.md").exists()
    assert "no time was left" in (tmp_path / "log.txt").read_text()


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


@pytest.mark.endurance
def test_wheels_are_joined_and_installed_and_missing_ones_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "carried_along-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("carried_along.py", "HERE = 'it is here'\n" + "# padding\n" * 50)
        about = "Metadata-Version: 2.1\nName: carried-along\nVersion: 1.0\n"
        archive.writestr("carried_along-1.0.dist-info/METADATA", about)
        archive.writestr("carried_along-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("carried_along-1.0.dist-info/RECORD", "")
    carried = tmp_path / "carried"
    assert cut([wheel], tmp_path / "trips", 300) == -(-wheel.stat().st_size // 300)
    carried.mkdir()
    for part in (tmp_path / "trips").rglob("*.whl.*"):
        shutil.copy(part, carried)
    (carried / "broken-1.0-py3-none-any.whl").write_text("no archive")
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    monkeypatch.setitem(all_steps.NEEDS, "index", ("not_there_at_all",))
    monkeypatch.setattr(
        all_steps, "_FACTS", all_steps._FACTS.replace('"faiss"', '"not_there_at_all"', 1)
    )
    stub = tmp_path / "stub.py"
    stub.write_text("import carried_along\ndef test_one():\n    assert carried_along.HERE\n")
    options = ["--stand-in", "--only", "index", "--tests", str(stub), "--wheels", str(carried)]
    assert all_steps.main(options) == 1
    output = capsys.readouterr().out
    assert "wheel broken: FAILED" in output and "wheel carried_along: done" in output
    assert "index on gpu: skipped, not_there_at_all missing on this machine" in output
    assert "1 passed" in (tmp_path / "out" / "tests.txt").read_text()


def test_versions_are_those_of_the_constraints() -> None:
    assert pinned("# no\nAv==18.1.0\nshapely==2.2.0 # why\n")["av"] == "Av==18.1.0"
