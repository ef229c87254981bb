"""Run every measure on the GPU and on the processors; write docs/benchmarks-gpu.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import torch

from ml.gpu import VARIABLE
from tests.bench.gpu.cpu_device import cpu_as_gpu
from tests.bench.gpu.measures import FULL, MEASURES, PROCESSOR, QUICK, Figure, device_name
from tests.bench.gpu.report import NOT_RUN, report

DOC = Path(__file__).resolve().parents[3] / "docs" / "benchmarks-gpu.md"


def main(arguments: list[str] | None = None) -> int:
    """Measure and write; with ``--measure`` one of them on the device of the environment."""
    parser = argparse.ArgumentParser(prog="make bench-gpu", description=__doc__)
    parser.add_argument("--measure", choices=sorted(MEASURES), help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a few of everything, to try it out")
    parser.add_argument("--stand-in", action="store_true", help="processors in place of the GPU")
    parser.add_argument("--out", type=Path, default=DOC)
    options = parser.parse_args(arguments)
    if options.measure:
        sizes = QUICK if options.quick else PROCESSOR if _is_on_processors() else FULL
        with cpu_as_gpu() if options.stand_in else nullcontext():
            figures = MEASURES[options.measure](sizes)
        print(json.dumps({name: asdict(figure) for name, figure in figures.items()}))
        return 0
    if (options.stand_in or options.quick) and options.out == DOC:
        parser.error("--stand-in and --quick try the command out: give another file by --out")
    if not torch.cuda.is_available() and not options.stand_in:
        print("This machine has no GPU that torch can use: nothing was measured.", file=sys.stderr)
        if not options.out.exists():
            options.out.write_text(NOT_RUN)
        return 1
    quick = ["--quick"] * options.quick
    instead = ["--stand-in"] * options.stand_in
    where = "cpu" if options.stand_in else "cuda"
    gpu = {name: _measured(name, where, [*quick, *instead]) for name in MEASURES}
    processors = {name: _measured(name, "cpu", quick) for name in MEASURES}
    options.out.write_text(report(gpu, processors, device=device_name()))
    return 0


def _is_on_processors() -> bool:
    return os.environ.get(VARIABLE) == "cpu"


def _measured(name: str, where: str, options: list[str]) -> dict[str, Figure]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu", "--measure", name, *options],
        env=os.environ | {VARIABLE: where},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} on {where}: {done.stderr[-2000:]}")
    data = json.loads(done.stdout.splitlines()[-1])
    return {what: Figure(**figure) for what, figure in data.items()}


if __name__ == "__main__":
    sys.exit(main())
