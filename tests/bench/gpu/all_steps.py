"""One call for a machine with a GPU: its facts, the tests marked ``gpu``, then every measure.

``OUT=folder python -m tests.bench.gpu.all_steps``, or ``make gpu-once``. It ends within ten minutes
whatever hangs: each step has a limit, what was done before stays written, and the page says what is
missing. Nothing but Python, torch and the packages of ``ml`` is needed: no Django, no services.
Packages that the machine lacks are taken from wheels that were carried there (``make gpu-wheels``);
measures whose packages are still missing are skipped, and the page says which and why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.gpu.measures import MEASURES, NEEDS, Figure
from tests.bench.gpu.report import report

ROOT = Path(__file__).resolve().parents[3]
WHEELS = ROOT / "build" / "gpu-wheels"
WHOLE_S = 570.0
"""Under the ten minutes that such a machine may be asked for at a time."""
TESTS_S, MEASURE_S = 150.0, 110.0
WHEELS_S = 60.0
_FACTS = """
import importlib.util, json, platform, torch
wanted = ("cv2", "faiss", "numpy", "PIL", "scipy", "shapely", "torch_geometric", "safetensors",
          "openslide", "pyvips", "av", "pytest", "matplotlib", "hypothesis")
facts = {"python": platform.python_version(), "torch": torch.__version__,
         "missing": [name for name in wanted if importlib.util.find_spec(name) is None]}
if torch.cuda.is_available():
    found = torch.cuda.get_device_properties(0)
    facts["gpu"] = f"{found.name}, {found.total_memory / 2**30:.0f} GiB"
if "faiss" not in facts["missing"]:
    import faiss
    facts["faiss"] = f"{faiss.__version__}, {faiss.get_num_gpus()} GPUs"
print(json.dumps(facts))
"""


class Call:
    """Steps that share one deadline and one folder."""

    def __init__(self, out: Path, whole_s: float) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.out, self._ends_s = out, time.monotonic() + whole_s
        self.failed: list[str] = []
        self.printed: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def step(self, name: str, command: list[str], limit_s: float, **variables: str) -> str | None:
        """Run a command and return its output; None if it failed or reached its limit."""
        left_s = min(limit_s, self._ends_s - time.monotonic())
        log = self.out / "log.txt"
        began_s, result, reason = time.monotonic(), None, "no time was left"
        if left_s > 1:
            try:
                done = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=os.environ | self.variables | variables,
                    capture_output=True,
                    text=True,
                    timeout=left_s,
                    check=False,
                )
                reason = f"exit {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
                self.printed[name] = done.stdout
                result = done.stdout if done.returncode == 0 else None
            except subprocess.TimeoutExpired as error:
                reason = f"stopped after {left_s:.0f} s\n{(error.stdout or b'')[-6000:]!r}"
        if result is None:
            self.failed.append(name)
        with log.open("a") as lines:
            lines.write(f"== {name}: {time.monotonic() - began_s:.1f} s: {reason}\n")
        print(f"{name}: {'done' if result is not None else 'FAILED'}", flush=True)
        return result

    def skip(self, name: str, reason: str) -> None:
        """Leave a step out, and say so."""
        self.failed.append(f"{name} ({reason})")
        print(f"{name}: skipped, {reason}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run all; the exit status is 0 where every step came to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stand-in", action="store_true", help="processors in place of the GPU")
    parser.add_argument("--quick", action="store_true", help="a few of everything")
    parser.add_argument("--seconds", type=float, default=WHOLE_S, help="for all of it")
    parser.add_argument("--only", nargs="*", choices=sorted(MEASURES), default=list(MEASURES))
    parser.add_argument("--tests", default="tests/ml", help="folder or file of the tests")
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of packages to add")
    options = parser.parse_args(arguments)
    if not os.environ.get("OUT"):
        parser.error("set OUT to the folder that the results go into")
    call = Call(Path(os.environ["OUT"]), options.seconds)
    with tempfile.TemporaryDirectory() as site:
        return _run(call, options, Path(site))


def _run(call: Call, options: argparse.Namespace, site: Path) -> int:
    _install(call, options.wheels, site)
    facts = call.step("facts", [sys.executable, "-c", _FACTS], 60.0)
    device_facts = json.loads(facts.splitlines()[-1]) if facts else {}
    (call.out / "facts.json").write_text(json.dumps(device_facts, indent=1))
    mark = "not gpu" if options.stand_in else "gpu"
    call.step("tests", _tests(options.tests, mark), TESTS_S)
    (call.out / "tests.txt").write_text(call.printed.get("tests") or "no end: see log.txt\n")
    _measure_all(
        call, options, str(device_facts.get("gpu", "CPU")), device_facts.get("missing", [])
    )
    return 1 if call.failed else 0


def _install(call: Call, wheels: Path, site: Path) -> None:
    """Unpack wheels for the steps that follow; what the machine has of its own comes after them."""
    wheel_paths = joined(wheels, site)
    if not wheel_paths:
        return
    alone = ["--no-index", "--no-deps", "--no-compile", "--quiet", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", *alone]
    for wheel in wheel_paths:  # one that does not fit this Python stops no other
        call.step(f"wheel {wheel.name.partition('-')[0]}", [*pip, str(wheel)], WHEELS_S)
    call.variables["PYTHONPATH"] = os.pathsep.join(
        part for part in (str(site), os.environ.get("PYTHONPATH")) if part
    )


def _tests(where: str, mark: str) -> list[str]:
    """Without the project's settings, which ask for Django."""
    plain = ["-c", os.devnull, "--rootdir", str(ROOT), "--confcutdir", str(ROOT / "tests" / "ml")]
    options = ["-q", "-ra", "-p", "no:django", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options.append("--continue-on-collection-errors")  # a package that is not there stops no other
    return [
        *(sys.executable, "-m", "pytest", *plain, *options),
        *("--import-mode=importlib", "-m", mark, str(ROOT / where)),
    ]


def joined(parts: Path, into: Path) -> list[Path]:
    """The wheels of which a folder holds whole files, or parts that end in ``.whl.NN``."""
    of: dict[str, list[Path]] = defaultdict(list)
    for path in sorted([*parts.glob("*.whl"), *parts.glob("*.whl.[0-9][0-9]")]):
        of[path.name.partition(".whl")[0] + ".whl"].append(path)
    for name, pieces in of.items():
        (into / name).write_bytes(b"".join(piece.read_bytes() for piece in pieces))
    return [into / name for name in of]


def _measure_all(
    call: Call, options: argparse.Namespace, device: str, missing: Sequence[str]
) -> None:
    """The GPU's measures first: they are what this machine is for."""
    result: dict[str, dict[str, dict[str, Figure]]] = {"gpu": {}, "processors": {}}
    for where, name in [(w, m) for w in result for m in options.only]:
        lacking = [package for package in NEEDS[name] if package in missing]
        if lacking:
            call.skip(f"{name} on {where}", f"{', '.join(lacking)} missing on this machine")
            continue
        is_gpu = where == "gpu" and not options.stand_in
        command = [sys.executable, "-m", "tests.bench.gpu", "--measure", name]
        printed = call.step(
            f"{name} on {where}",
            [
                *command,
                *(["--quick"] * options.quick),
                *(["--stand-in"] * (options.stand_in and where == "gpu")),
            ],
            MEASURE_S,
            TESSERA_DEVICE="cuda" if is_gpu else "cpu",
        )
        if printed is not None:
            figures = json.loads(printed.splitlines()[-1])
            result[where][name] = {what: Figure(**figure) for what, figure in figures.items()}
        if any(result.values()):
            _write(call, result, device)


def _write(call: Call, found: dict[str, dict[str, dict[str, Figure]]], device: str) -> None:
    plain = {
        where: {
            name: {what: asdict(item) for what, item in of.items()} for name, of in by_name.items()
        }
        for where, by_name in found.items()
    }
    (call.out / "figures.json").write_text(json.dumps(plain, indent=1))
    page = report(found["gpu"], found["processors"], device=device, missing=call.failed)
    (call.out / "benchmarks-gpu.md").write_text(page)


if __name__ == "__main__":
    sys.exit(main())
