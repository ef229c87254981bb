"""Declare background work, which ``portal.jobs`` runs.

The linter bans Celery's own decorators elsewhere: a task without a job row cannot be listed,
cancelled or recovered.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

QUEUES = ("default", "gpu")


class Priority(enum.IntEnum):
    """Order in which workers take jobs; labs and people take turns within a priority."""

    INTERACTIVE = 0  # somebody waits for it on a page
    INGEST = 1  # processing an upload, building a mosaic
    BULK = 2  # whole canvases and archives, in parts between which other jobs run


class JobContext(Protocol):
    """Interface of a running task to its job."""

    job_id: uuid.UUID
    batch_result: Any  # this job's value from ``Batching.run``; None if it was not in a batch

    def progress(self, done: int, total: int, phase: str) -> None:
        """Record progress (throttled); may raise ``JobCancelled`` or ``LeaseLost``."""

    def effect(self) -> AbstractContextManager[None]:
        """Transaction for all lasting changes of a task, at its end.

        It fails if the lease was lost, so that a paused worker whose job another worker took over
        does not write a second time.
        """

    def part(self) -> AbstractContextManager[None]:
        """Transaction of one part of the work, like ``effect``; the job continues after it.

        A later attempt must find what was committed and do the rest. Attempts lost before are no
        longer counted.
        """

    def give_way(self) -> None:
        """Raise ``JobYielded`` if other jobs must go first; call it between two parts.

        The task must let the exception pass. The job then goes back into the queue.
        """

    def scratch(self) -> AbstractContextManager[Path]:
        """Temporary folder on the storage volume, so that files can be renamed out of it."""


class UserError(Exception):
    """Failure for a reason the user can understand; not retried."""

    def __init__(self, message: str, *, code: str = "failed") -> None:
        super().__init__(message)
        self.message, self.code = message, code


class JobCancelled(Exception):
    pass


class JobYielded(Exception):
    """Return the job to the queue for more urgent ones, without counting the attempt."""


class LeaseLost(Exception):
    """Another worker took the job over; this attempt must not write anything."""


JobResult = dict[str, str | int | float | list[str]]
"""Result of a task as JSON, shown with the job. The key ``outcome`` is the reason why a successful
task has no result, such as ``no tissue``; pages show it instead of "Done"."""

TaskFunction = Callable[..., JobResult | None]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Batching:
    """Processing of several waiting jobs of a kind in one batch, before each runs as usual.

    Only an optimisation: each job keeps its own lease, final transaction and state, and repeats
    the work if the batch raised or left it out.

    Attributes:
        max_size: Return the largest batch, once the worker has claimed its first job; 1 disables
            batching.
        keys: Return a key for each job's arguments. Jobs with equal keys share a batch; None: the
            job runs on its own.
        run: Process the jobs of a batch and return a value for each, its ``batch_result``. A
            context raises ``JobCancelled`` or ``LeaseLost`` for its own job only.
    """

    max_size: Callable[[], int]
    keys: Callable[[Sequence[Arguments]], Sequence[Hashable]]
    run: Callable[[Sequence[tuple[JobContext, Arguments]]], Sequence[Any]]


Upgrade = Callable[[dict[str, Any], int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A registered kind of job.

    Attributes:
        title: Name shown to people, such as "Prepare slide".
        retry_on: Exceptions after which the job is tried again; others end it.
        backoff_s: The pause before attempt n+1 is ``backoff_s * 2 ** (n - 1)``, at most 10 minutes.
        version: Version of the arguments; jobs keep the one they were submitted with.
        upgrade: Converts arguments of an older version, given both, to the current version.
        batching: Processes several waiting jobs of the kind together.
        is_internal: Maintenance of the portal. Its jobs are not listed and emit no events, and
            their rows are deleted when they succeed.
    """

    kind: str
    title: str
    function: TaskFunction
    queue: str
    max_attempts: int
    retry_on: tuple[type[Exception], ...]
    backoff_s: float
    priority: Priority = Priority.INTERACTIVE
    version: int = 1
    upgrade: Upgrade | None = None
    batching: Batching | None = None
    is_internal: bool = False


REGISTRY: dict[str, TaskSpec] = {}


def internal_kinds() -> list[str]:
    """Kinds of jobs that are not shown to people."""
    return [kind for kind, spec in REGISTRY.items() if spec.is_internal]


def job_task(
    kind: str,
    *,
    title: str = "",
    queue: str = "default",
    priority: Priority = Priority.INTERACTIVE,
    max_attempts: int = 3,
    retry_on: tuple[type[Exception], ...] = (OSError,),
    backoff_s: float = 5.0,
    version: int = 1,
    upgrade: Upgrade | None = None,
    batching: Batching | None = None,
    is_internal: bool = False,
) -> Callable[[TaskFunction], TaskFunction]:
    """Register ``function(context, **args)`` as the task of jobs of ``kind``.

    The function must be idempotent, because it runs again after a worker died. Waiting jobs
    outlive releases: if the arguments change, raise ``version`` and pass ``upgrade``.
    """
    if (version > 1) != (upgrade is not None):
        raise ValueError(f"job kind {kind!r}: version 1 has no upgrade, later ones need one")
    if queue not in QUEUES:
        raise ValueError(f"queue must be one of {QUEUES}, got {queue!r}")

    def register(function: TaskFunction) -> TaskFunction:
        registered = REGISTRY.get(kind)
        if registered and registered.function.__module__ != function.__module__:
            raise ValueError(f"job kind {kind!r} is registered by {registered.function.__module__}")
        REGISTRY[kind] = TaskSpec(
            kind=kind,
            title=title or kind.replace("_", " ").capitalize(),
            function=function,
            queue=queue,
            max_attempts=max_attempts,
            retry_on=retry_on,
            backoff_s=backoff_s,
            priority=priority,
            version=version,
            upgrade=upgrade,
            batching=batching,
            is_internal=is_internal,
        )
        return function

    return register
