"""Limits and confinement of a child process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a child process.

    Attributes:
        memory_bytes: Address space; the libraries themselves take about 0.6 GiB of it.
        cpu_s: CPU seconds of all its threads.
        wall_s: Seconds from start to end.
        file_bytes: Largest file it may write; the largest upload is 100 GiB by default.
        open_files: File descriptors.
    """

    memory_bytes: int = 3 * 1024**3
    cpu_s: int = 1_800
    wall_s: float = 3_600.0
    file_bytes: int = 128 * 1024**3
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Confinement:
    """Kernel mechanisms that confined a child; "" for none.

    Attributes:
        files: "landlock" or "namespace": it can open only the given files. "": only the checks of a
            set's file names limit what it opens.
        network: "seccomp", "namespace" or "landlock" (which denies only TCP).
        programs: "seccomp" or "landlock": it starts no other program.
    """

    files: str
    network: str
    programs: str

    @property
    def is_complete(self) -> bool:
        """Return whether files, network and programs are all shut off by the kernel."""
        return bool(self.files and self.network and self.programs)
