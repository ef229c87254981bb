"""Libraries that only some of the work needs; the package names them as extras."""

from __future__ import annotations

import importlib.util

from ml.errors import MissingDependencyError


def require_extra(package: str, *, extra: str) -> None:
    """Refuse work whose library is missing, before it begins.

    Args:
        package: what is imported.
        extra: of this project, which installs it.
    Raises:
        MissingDependencyError: it is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(package, extra)
