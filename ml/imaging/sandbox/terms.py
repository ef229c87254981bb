"""What a child process may use, and how it was confined."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child process may use.

    Attributes:
        memory_bytes: address space; the libraries themselves take about 0.6 GiB of it.
        cpu_s: CPU seconds of all its threads.
        wall_s: seconds from start to end.
        file_bytes: largest file it may write; the largest upload is 100 GiB by default.
        open_files: file descriptors.
    """

    memory_bytes: int = 3 * 1024**3
    cpu_s: int = 1_800
    wall_s: float = 3_600.0
    file_bytes: int = 128 * 1024**3
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Confinement:
    """The kernel's means by which a child was confined; "" for none.

    Attributes:
        files: "landlock" or "namespace": it opens what it was given and no other file. "": only
            the checks of the set's own names stand between it and what the process may read.
        network: "seccomp", "namespace" or "landlock" (which stops TCP alone).
        programs: "seccomp" or "landlock": it starts no other program.
    """

    files: str
    network: str
    programs: str

    @property
    def is_complete(self) -> bool:
        """Whether files, network and programs are all shut off by the kernel."""
        return bool(self.files and self.network and self.programs)
