"""Contents of a suite file: sets, their tasks, and how they are scored."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from ml.config import config_from_dict
from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.alignment import CELL_UM

KINDS = ("manifest", "table", "sections", "collages", "slides")
WITHOUT_LABELS = ("sections", "collages", "slides")
"""Kinds that make their tasks themselves."""
SHIPPED = Path(__file__).with_name("suite.toml")
"""Suite by which encoders are chosen; others are in the same folder, found by name."""


@dataclass(frozen=True, slots=True)
class SetConfig:
    """One set of regions. Paths are relative to the data folder."""

    name: str = ""  # what tables call it
    kind: str = "manifest"  # a folder with rois.csv; a CSV table; a folder of adjacent sections;
    # collages of the patients of a CSV table; a folder of slides
    path: str = ""  # of the folder, or of the table
    where: dict[str, str] = field(default_factory=dict)  # of a table: column to the value wanted
    patient: str = ""  # of sections: their patient
    patients: dict[str, str] = field(default_factory=dict)  # of slides: name of the file to patient
    rearranged: int = 0  # copies of each region of a gallery with the tissue rearranged
    cell_um: float = CELL_UM  # of sections and slides: side of a cell
    stride_um: float = 0.0  # of sections: between the centres of cells; 0 for the side of a cell
    single: bool = False  # of sections: whether the cell alone is right, without its neighbours
    others: dict[str, str] = field(default_factory=dict)  # of sections: slides of other patients
    # whose cells are in every gallery: file, relative to the data folder, to patient
    tasks: dict[str, list[str]] = field(default_factory=dict)  # name to NAME=LABEL,LABEL groups
    choice: bool = True  # whether it counts when the encoder is chosen
    query_choice: bool = True  # whether it counts when the query method is chosen
    swap: bool = True  # whether its gallery is re-stained
    unrelated: tuple[str, ...] = ()  # sets of other organs, laboratories and patients


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Tiles that the baselines learn their words from; no patient of them is in a set."""

    index: str = ""  # a CSV table, relative to the data folder
    where: dict[str, str] = field(default_factory=dict)  # column to the value wanted
    each: int = 24  # most tiles of one patient


@dataclass(frozen=True, slots=True)
class SuiteConfig:
    """A suite."""

    k: int = 10  # results that mAP counts
    draws: int = 5  # of the stain swap
    bootstrap: int = 1000  # draws of the intervals
    seed: int = 0  # of swaps, words, random rankings and draws
    training: TrainingConfig = field(default_factory=TrainingConfig)
    sets: tuple[SetConfig, ...] = ()


def read_suite(path: Path) -> SuiteConfig:
    """Read and check a suite file; a bare name is a shipped one, unless there is such a file here.

    Raises:
        BadInputError: no such file, not TOML, an unknown key, or a value that makes no sense.
    """
    if not path.is_file() and path == Path(path.name):
        shipped = SHIPPED.with_name(path.name)
        path = shipped if shipped.is_file() else path
    if not path.is_file():
        raise BadInputError(f"{path}: no such suite file; the shipped one is {SHIPPED.name}")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path.name}: not TOML: {error}") from error
    config = config_from_dict(SuiteConfig, values, where=path.name)
    _check(config, path.name)
    return config


def _check(config: SuiteConfig, where: str) -> None:
    if config.k < 1 or config.bootstrap < 1 or config.draws < 0:
        raise BadInputError(f"{where}: expected k and bootstrap of at least 1, draws of at least 0")
    if not config.sets:
        raise BadInputError(f"{where}: no [[sets]] in it")
    names = [s.name for s in config.sets]
    for s in config.sets:
        if not s.name or names.count(s.name) > 1:
            raise BadInputError(f"{where}: every set needs a name of its own, got {s.name!r}")
        if s.cell_um <= 0 or s.stride_um < 0:
            raise BadInputError(
                f"{where}: {s.name}: expected a cell_um above 0 and a stride_um of 0 or more"
            )
        for other in s.unrelated:
            if other not in names or other == s.name:
                raise BadInputError(f"{where}: {s.name}: unrelated: no other set is called {other}")
        if s.kind not in KINDS:
            raise BadInputError(
                f"{where}: {s.name}: kind: expected one of {', '.join(KINDS)}, got {s.kind!r}"
            )
        if not s.path or (s.kind not in WITHOUT_LABELS and not s.tasks):
            raise BadInputError(f"{where}: {s.name}: expected a path and at least one task")
    if not config.training.index:
        raise BadInputError(f"{where}: [training]: expected an index")
