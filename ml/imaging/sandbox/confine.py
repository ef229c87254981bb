"""Confinement of this process by the strongest mechanisms of the kernel."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ml.imaging.sandbox import landlock, namespaces, seccomp
from ml.imaging.sandbox.code_paths import code_paths
from ml.imaging.sandbox.policy import Confinement

MEANS = ("landlock", "namespace", "seccomp")
_NULL = Path("/dev/null")


def confine(
    reads: Sequence[Path], writes: Sequence[Path], *, means: Sequence[str] = MEANS
) -> Confinement:
    """Permanently give up all files but these and the code, the network and other programs.

    Args:
        reads, writes: Absolute paths; files, or folders with their content.
        means: Mechanisms that may be used, for tests of a kernel without some of them.
    Raises:
        RuntimeError: Other threads run already; they would not be confined.
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
    """Mechanism that hides the other files ("" for none), and whether it also denies TCP."""
    if "landlock" in means and landlock.version():
        return "landlock", landlock.restrict(reads, writes)
    if "namespace" in means:
        root = Path(tempfile.mkdtemp(prefix="root-"))
        if namespaces.available(reads, writes, root=root):
            namespaces.restrict(reads, writes, root=root)
            return "namespace", True
    return "", False
