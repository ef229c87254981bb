"""Packages for a machine with a GPU that can reach nothing: ``make gpu-wheels``.

An image with torch usually lacks what ``ml`` reads pictures and searches with. The wheels are put
into ``build/gpu-wheels``, cut into trips of what may travel at a time with the working tree. Each
trip is copied to one folder there; ``make gpu-once`` joins and installs what it finds in it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.gpu.all_steps import ROOT, WHEELS

PYTHON = "3.12"
PLATFORMS = ("2_28", "2_27", "2_24", "2_17", "2_5")
CARRIED_BYTES = 64 * 2**20
"""Largest size of the files that are copied to a machine with a GPU."""
MARGIN_BYTES = 2**20
"""Part of that size kept free for file names and growth of the working tree."""
PACKAGES = ("shapely", "openslide-python", "openslide-bin", "pyvips-binary", "cffi", "av")
SOURCES = ("pyvips",)
"""Published without wheels, and without compiled code."""
CUDA = "faiss-gpu-cu12"


def main(arguments: list[str] | None = None) -> int:
    """Fetch the wheels, cut them into trips, and say what to call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=WHEELS)
    options = parser.parse_args(arguments)
    shutil.rmtree(options.out, ignore_errors=True)
    room = CARRIED_BYTES - MARGIN_BYTES - tree_bytes()
    if room <= 0:
        print("The working tree alone is more than may travel.")
        return 1
    versions = pinned((ROOT / "constraints.txt").read_text())
    with tempfile.TemporaryDirectory() as name:
        for package in (*PACKAGES, CUDA):
            _fetch(versions.get(package, package), Path(name))
        for package in SOURCES:
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            subprocess.run([*pip, "-w", name, versions.get(package, package)], check=True)
        trips = cut(sorted(Path(name).glob("*.whl")), options.out, room)
    for number in range(1, trips + 1):
        folder = options.out.relative_to(ROOT) / str(number)
        print(f"carry {folder}: mkdir -p /tmp/wheels && cp {folder}/* /tmp/wheels")
    print("then: OUT=$OUT python3 -m tests.bench.gpu.all_steps --wheels /tmp/wheels")
    return 0


def pinned(constraints: str) -> dict[str, str]:
    """Name to ``name==version`` of each line."""
    matches = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", constraints, re.MULTILINE)
    return {name.lower(): f"{name}=={version}" for name, version in matches}


def cut(wheels: list[Path], out: Path, room: int) -> int:
    """Write the wheels as ``NAME.whl.NN`` into folders of at most ``room`` bytes; how many."""
    trip, left = 1, room
    for wheel in wheels:
        content, part = wheel.read_bytes(), 0
        while content:
            if not left:
                trip, left = trip + 1, room
            piece, content = content[:left], content[left:]
            folder = out / str(trip)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{wheel.name}.{part:02d}").write_bytes(piece)
            part, left = part + 1, left - len(piece)
    return trip


def tree_bytes() -> int:
    """Total size of the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    known = [ROOT / name for name in listed.split("\0") if name]
    return sum(path.stat().st_size for path in known if path.is_file())


def _fetch(wanted: str, out: Path) -> None:
    fits = [word for p in PLATFORMS for word in ("--platform", f"manylinux_{p}_x86_64")]
    fits += ["--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64"]
    alone = ["--quiet", "--no-deps", "--only-binary=:all:", "--implementation", "cp"]
    pip = [sys.executable, "-m", "pip", "download", *alone, "--python-version", PYTHON]
    subprocess.run([*pip, *fits, "-d", str(out), wanted], check=True)


if __name__ == "__main__":
    sys.exit(main())
