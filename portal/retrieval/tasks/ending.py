"""The end of a job that others may bring more work while it runs."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.tasks import JobContext


class _MoreToDoError(Exception):
    """Something came in while the job was about to end."""


def has_ended(context: JobContext, is_done: Callable[[], bool]) -> bool:
    """End the job, unless there is more to do by now.

    Args:
        is_done: asked in the transaction that ends the job, for which whoever brings more has to
            wait; what it writes lasts only if it says yes.
    """
    try:
        with context.effect():
            if not is_done():
                raise _MoreToDoError
    except _MoreToDoError:
        return False
    return True
