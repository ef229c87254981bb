"""Seccomp filter: system calls that opening a file never needs fail with "not permitted".

Sockets, other programs, memory of other processes, mounts, keys, and calls that have been ways out
of sandboxes. Structures as in linux/seccomp.h and linux/filter.h.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from pathlib import Path

_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2  # linux/prctl.h
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06  # of classic BPF
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4  # in struct seccomp_data
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # EPERM is 1
_X32 = 0x40000000  # system calls of the x32 ABI have this bit

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_open": 434, "pidfd_getfd": 438, "mount_setattr": 442,
}  # fmt: skip
_REFUSED = {
    "x86_64": {
        "socket": 41, "execve": 59, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101,
        "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "swapon": 167,
        "reboot": 169, "init_module": 175, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "fchownat": 260,
        "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "execveat": 322,
        "userfaultfd": 323,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "umount2": 39, "mount": 40,
        "pivot_root": 41, "chroot": 51, "fchownat": 54, "fchown": 55, "unshare": 97,
        "kexec_load": 104, "init_module": 105, "ptrace": 117, "reboot": 142, "socket": 198,
        "add_key": 217, "request_key": 218, "keyctl": 219, "execve": 221, "swapon": 224,
        "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273, "bpf": 280,
        "execveat": 281, "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def no_new_privileges() -> bool:
    """Deny started programs any rights of their files, as the kernel requires before a filter."""
    return _prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def restrict() -> bool:
    """Install the filter permanently; False if the kernel or the architecture has none.

    Call ``no_new_privileges`` before, and while the process has one thread.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    code = _program(_ARCHITECTURES[machine], [*_REFUSED[machine].values(), *_EVERYWHERE.values()])
    program = _Program(len(code) // 8, code)
    return _prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0


def _program(architecture: int, refused: list[int]) -> bytes:
    """BPF: kill calls of another architecture, refuse those listed, allow the rest."""
    tests = len(refused)
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_GREATER_EQUAL, tests + 1, 0, _X32),
        *((_JUMP_EQUAL, tests - at, 0, number) for at, number in enumerate(refused)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _prctl(*arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).prctl(*arguments))


def thread_count() -> int:
    """Threads of this process: the filters bind only the calling thread and those it starts."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())
