"""Landlock: a process gives up access to all files but those it names (Linux 5.13 and later).

It binds root too and cannot be undone. Names and sizes remain visible to ``stat``. Constants and
structures as in linux/landlock.h; the system calls have the same number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, on every processor
_VERSION_FLAG, _PATH_BENEATH = 1, 1  # of linux/landlock.h, as all below

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_ALL_FS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights of each version: rights that are handled and not granted are denied."""
_TCP, _NET_SINCE = 0b11, 4  # bind and connect, since that version
_SCOPED, _SCOPED_SINCE = 0b11, 6  # abstract sockets and signals of processes outside


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


def version() -> int:
    """Landlock version of the kernel, 0 if it is missing or switched off."""
    return max(_call(_CREATE_RULESET, None, 0, _VERSION_FLAG), 0)


def restrict(reads: Iterable[Path], writes: Iterable[Path]) -> bool:
    """Deny this process all files but these and their content; True if TCP is denied too.

    Call ``no_new_privileges`` before, and while the process has one thread.

    Raises:
        OSError: The kernel refused, or a path does not exist.
    """
    abi = version()
    attributes = _Ruleset(
        _ALL_FS[min(abi, max(_ALL_FS))],
        _TCP if abi >= _NET_SINCE else 0,
        _SCOPED if abi >= _SCOPED_SINCE else 0,
    )
    size = 24 if abi >= _SCOPED_SINCE else 16 if abi >= _NET_SINCE else 8
    ruleset = _check_result(_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0))
    try:
        for access, paths in ((_READ, reads), (_WRITE, writes)):
            for path in paths:
                _allow(ruleset, path, access & attributes.fs)
        _check_result(_call(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return abi >= _NET_SINCE


def _allow(ruleset: int, path: Path, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _OF_FILES
        rule = _PathBeneath(access, fd)
        _check_result(_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))


def _check_result(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return answer
