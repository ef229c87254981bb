"""End of a job that may receive more work while it runs."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.tasks import JobContext


class _MoreWorkError(Exception):
    """New work arrived while the job was about to end."""


def finish_if_done(context: JobContext, is_done: Callable[[], bool]) -> bool:
    """End the job, unless more work arrived.

    Args:
        is_done: Called in the transaction that ends the job, which blocks submitters of more work.
            Its writes are committed only if it returns True.
    """
    try:
        with context.effect():
            if not is_done():
                raise _MoreWorkError
    except _MoreWorkError:
        return False
    return True
