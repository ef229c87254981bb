"""Mount namespace: a process moves to a new root that holds only the paths it names.

For kernels without Landlock that let users create namespaces. There are no other files there, and
no network.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_NEWNS, _NEWIPC, _NEWUSER, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x40000000  # linux/sched.h
_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND = 1, 2, 4, 32, 4096  # linux/mount.h
_REC, _PRIVATE, _DETACH = 16384, 1 << 18, 2  # the same
_LOCKED_FLAGS = 0xF | 1024 | 2048
"""Flags of a mount that another namespace has locked: they must be named again on a change."""
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}  # number of the system call


def restrict(reads: Iterable[Path], writes: Iterable[Path], *, root: Path) -> None:
    """Move into ``root``, where the given paths appear at their own places; reads are read-only.

    Call while the process has one thread.

    Args:
        root: an empty folder, which becomes the mount point of the new root.
    Raises:
        OSError: the kernel lets this user have no namespace.
    """
    user, group = os.geteuid(), os.getegid()
    _check_result(_libc().unshare(_NEWUSER | _NEWNS | _NEWNET | _NEWIPC))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount(None, Path("/"), _REC | _PRIVATE)
    _mount("tmpfs", root, _NOSUID | _NODEV, kind="tmpfs")
    mounts = [(path, True) for path in reads] + [(path, False) for path in writes]
    for path, read_only in sorted(mounts, key=lambda entry: len(entry[0].parts)):
        for place in dict.fromkeys((path, path.resolve())):
            _bind(path, root / place.relative_to("/"), read_only=read_only)
    os.chdir(root)
    _check_result(_libc().syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."))
    _check_result(_libc().umount2(b".", _DETACH))
    os.chdir("/")


def available(reads: Iterable[Path], writes: Iterable[Path], *, root: Path) -> bool:
    """Return whether ``restrict`` will succeed, by trying it in a fork: it cannot be undone."""
    child = os.fork()
    if child == 0:
        try:
            restrict(reads, writes, root=root)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _bind(path: Path, place: Path, *, read_only: bool) -> None:
    if path.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.touch()
    _mount(str(path), place, _BIND | _REC)
    if read_only:
        locked = os.statvfs(path).f_flag & _LOCKED_FLAGS
        _mount(None, place, _BIND | _REMOUNT | _RDONLY | locked)


def _mount(source: str | None, target: Path, flags: int, *, kind: str | None = None) -> None:
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    _check_result(_libc().mount(*names, ctypes.c_ulong(flags), None))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check_result(answer: int) -> None:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"namespace: {os.strerror(code)}")
