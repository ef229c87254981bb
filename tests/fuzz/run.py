"""Damaged files through the sandbox as an ingest does it; what became of each."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ml.errors import LimitExceededError, MlError
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from tests.fuzz.damage import damaged
from tests.fuzz.samples import samples

LIMITS = Limits(cpu_s=60, wall_s=180.0, file_bytes=1024**3)
"""Far above what a small file needs: whoever meets them is a finding."""
FINDINGS = ("internal", "crash", "limit")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one file.

    Attributes:
        number: with the seed, names the file. kind: "accepted", the code of a refusal, or one of
            ``FINDINGS``.
    """

    number: int
    name: str
    kind: str
    message: str

    @property
    def is_finding(self) -> bool:
        """Return whether it is a defect."""
        return self.kind in FINDINGS


def damaged_file(honest: dict[str, bytes], *, seed: int, number: int) -> tuple[str, bytes]:
    """The file of a number: its format's name and its bytes, always the same."""
    names = sorted(honest)
    name = names[number % len(names)]
    return name, damaged(random.Random(f"{seed}-{number}"), honest[name])


def outcomes(
    count: int,
    *,
    seed: int,
    workers: int = 1,
    keep: Path | None = None,
    first: int = 0,
    only: Collection[str] = (),
) -> Iterator[Outcome]:
    """Damage ``count`` files and open each in a child.

    Args:
        keep: where to write the files that were findings.
        only: names of formats; none: all of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        honest = {
            name: data for name, data in samples(Path(folder)).items() if not only or name in only
        }

        def one(number: int) -> Outcome:
            name, data = damaged_file(honest, seed=seed, number=number)
            outcome = _opened(number, name, data)
            if keep is not None and outcome.is_finding:
                (keep / f"{seed}-{number}-{name}").write_bytes(data)
            return outcome

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(one, range(first, first + count))


def _opened(number: int, name: str, data: bytes) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "file", Path(folder) / "out"
        path.write_bytes(data)
        out.mkdir()
        kind, message = _outcome(
            lambda: run_limited(
                "tests.fuzz.child:process_upload",
                {"path": str(path), "out_dir": str(out)},
                reads=(path,),
                writes=(out,),
                limits=LIMITS,
            )
        )
        return Outcome(number, name, kind, message.replace(folder, "<folder>"))


def _outcome(run: Callable[[], object]) -> tuple[str, str]:
    try:
        run()
    except LimitExceededError as error:
        return "limit", str(error)
    except MlError as error:
        crashed = "the decoder crashed" in str(error)
        return "crash" if crashed else error.code, str(error)
    except (OSError, RuntimeError) as error:  # what a job would call internal
        return "internal", str(error)
    return "accepted", ""


def tally(found: list[Outcome]) -> str:
    """A table: outcomes by format."""
    kinds = sorted({outcome.kind for outcome in found})
    lines = [f"{'':14}" + "".join(f"{kind:>20}" for kind in kinds)]
    for name in sorted({outcome.name for outcome in found}):
        counts = Counter(outcome.kind for outcome in found if outcome.name == name)
        lines.append(f"{name:14}" + "".join(f"{counts[kind]:20}" for kind in kinds))
    counts = Counter(outcome.kind for outcome in found)
    lines.append(f"{'all':14}" + "".join(f"{counts[kind]:20}" for kind in kinds))
    return "\n".join(lines)
