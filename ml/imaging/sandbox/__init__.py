"""Run one function on a file from a user in a child process that cannot harm the caller.

A fresh interpreter (never a fork) with limits on memory, CPU, wall time and file size, without core
dumps and without the caller's environment. Once its code is loaded it shuts itself in: the kernel
lets it open the paths it was given and no other, no network, no other program (``confine`` says by
which means). It speaks JSON lines over a pipe; what it raises as an ``MlError`` is raised again
here.

::

    parent.py      run_limited: starts the child, listens, ends it
    child.py       what the child does first, and how it answers
    confine.py     the strongest means that the kernel has: landlock.py, else namespaces.py;
                   seccomp.py beside either; visible.py says what code it still needs
    terms.py       what a child may use, and how it was confined
"""

from ml.imaging.sandbox.parent import confinement, run_limited
from ml.imaging.sandbox.terms import Confinement, Limits

__all__ = ["Confinement", "Limits", "confinement", "run_limited"]
