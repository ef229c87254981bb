"""The descriptors of a run: those that load, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ml.errors import BadInputError, MlError
from ml.keypoints import Descriptor, load_descriptor

ALL_NAMES = ("sift", "orb", "akaze", "kaze", "triplet", "cnn", "graph", "vit", "tessera", "default")
LEARNED_NAMES = ("triplet", "cnn", "graph", "vit", "tessera", "default")


def load_descriptors(names: Sequence[str]) -> tuple[dict[str, Descriptor], dict[str, str]]:
    """Load descriptors by name.

    Returns:
        loaded: by name, in order; a second name of the same descriptor (``default``) is left out
        where the first is there. skipped: by name, the reason in one line.
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


def told_name(name: str) -> str:
    """What tables call a descriptor; with other weights, ``NAME:FILE``, NAME and FILE's folder."""
    family, has_file, file = name.partition(":")
    return f"{family} {Path(file).resolve().parent.name}" if has_file else name


def split_names(words: Sequence[str]) -> list[str]:
    """Names given apart or with commas, each once, in order."""
    names = [name.strip() for word in words for name in word.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def versions_of(descriptors: Mapping[str, Descriptor]) -> dict[str, str]:
    """The version that each descriptor states; hand-crafted ones state none."""
    found = {name: str(getattr(d, "version", "")) for name, d in descriptors.items()}
    return {name: version for name, version in found.items() if version}


def versions_line(versions: Mapping[str, str]) -> str:
    """One sentence on the versions, empty if there are none."""
    if not versions:
        return ""
    return "Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + "."
