"""Files that a confined child needs in addition to the given ones: its code, no user data."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import ml

_SYSTEM = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom", "/dev/zero",
    "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip
_OF_PYTHON = ("stdlib", "platstdlib", "purelib", "platlib")
_PACKAGES = ("site-packages", "dist-packages")


def code_paths() -> tuple[Path, ...]:
    """Libraries and modules, which may be loaded after the child has confined itself.

    Of the folder that contains ``ml`` only ``ml`` itself: a portal's storage may be next to it.
    """
    candidates = [sysconfig.get_path(name) for name in _OF_PYTHON]
    candidates += [path for path in sys.path if Path(path).name in _PACKAGES]
    candidates += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    paths = [Path(ml.__file__).parent, *(Path(path) for path in (*candidates, *_SYSTEM) if path)]
    return tuple(path for path in dict.fromkeys(paths) if path.is_absolute() and path.exists())
