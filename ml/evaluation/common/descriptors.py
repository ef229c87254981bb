"""Loading and naming of the descriptors of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ml.errors import BadInputError, MlError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.registry import Descriptor

ALL_NAMES = ("sift", "orb", "akaze", "kaze", "triplet", "cnn", "graph", "vit", "tessera", "default")


def load_descriptors(names: Sequence[str]) -> tuple[dict[str, Descriptor], dict[str, str]]:
    """Load descriptors by name.

    Returns:
        loaded: by name, in order, without a second name of the same descriptor (``default``).
        skipped: the reason in one line, by name.
    Raises:
        BadInputError: none loads.
    """
    loaded: dict[str, Descriptor] = {}
    skipped: dict[str, str] = {}
    for name in names:
        try:
            descriptor = load_descriptor(name)
        except (MlError, ImportError, OSError) as error:
            skipped[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            continue
        if descriptor.name != name and descriptor.name in loaded:
            skipped[name] = f"is {descriptor.name}"
            continue
        loaded[name] = descriptor
    if not loaded:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise BadInputError(f"descriptors: expected one that loads, got none ({reasons})")
    return loaded, skipped


def table_name(name: str) -> str:
    """Name of a descriptor in tables; for ``NAME:FILE``, NAME and the folder of FILE."""
    family, has_file, file = name.partition(":")
    return f"{family} {Path(file).resolve().parent.name}" if has_file else name


def split_names(words: Sequence[str]) -> list[str]:
    """Split words at commas; each name occurs once, in order."""
    names = [name.strip() for word in words for name in word.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def versions_of(descriptors: Mapping[str, Descriptor]) -> dict[str, str]:
    """Versions by name, of descriptors that state one."""
    versions = {name: str(getattr(d, "version", "")) for name, d in descriptors.items()}
    return {name: version for name, version in versions.items() if version}


def versions_line(versions: Mapping[str, str]) -> str:
    """Sentence with the versions, empty if there are none."""
    if not versions:
        return ""
    return "Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + "."
