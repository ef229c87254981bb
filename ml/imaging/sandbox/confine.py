"""Shut this process in by the strongest means the kernel has, and say which it was."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ml.imaging.sandbox import landlock, namespaces, seccomp
from ml.imaging.sandbox.terms import Confinement
from ml.imaging.sandbox.visible import code_paths

MEANS = ("landlock", "namespace", "seccomp")
_NULL = Path("/dev/null")


def confine(
    reads: Sequence[Path], writes: Sequence[Path], *, means: Sequence[str] = MEANS
) -> Confinement:
    """Give up all files but these and the code, the network and other programs, for good.

    Args:
        reads, writes: absolute; files, or folders with what lies beneath them.
        means: which may be used, for tests of a lesser kernel.
    Raises:
        RuntimeError: other threads run already; they would stay free.
    """
    if sys.platform != "linux":
        return Confinement("", "", "")
    if (threads := seccomp.thread_count()) != 1:
        raise RuntimeError(f"a process with {threads} threads cannot confine itself")
    seccomp.no_new_privileges()
    files, no_tcp = _files((*reads, *code_paths()), (*writes, _NULL), means)
    filtered = "seccomp" in means and seccomp.restrict()
    network = "seccomp" if filtered else "namespace" if files == "namespace" else ""
    return Confinement(
        files=files,
        network=network or ("landlock" if no_tcp else ""),
        programs="seccomp" if filtered else "landlock" if files == "landlock" else "",
    )


def _files(reads: Sequence[Path], writes: Sequence[Path], means: Sequence[str]) -> tuple[str, bool]:
    """What hides the other files ("" for nothing), and whether it also stops TCP."""
    if "landlock" in means and landlock.version():
        return "landlock", landlock.restrict(reads, writes)
    if "namespace" in means:
        root = Path(tempfile.mkdtemp(prefix="root-"))
        if namespaces.available(reads, writes, root=root):
            namespaces.restrict(reads, writes, root=root)
            return "namespace", True
    return "", False
