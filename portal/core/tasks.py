"""The one way to declare background work. ``portal.jobs`` runs what is registered here.

The linter bans Celery's own decorators elsewhere: a bare Celery task has no row, so nobody could
see, cancel or recover it.
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
    """Which work a worker takes first; within one, labs and people take turns."""

    INTERACTIVE = 0  # somebody looks at the page that waits for it
    INGEST = 1  # an upload to be looked at, a mosaic to be built
    BULK = 2  # whole canvases and archives: in parts, between which the others have their turn


class JobContext(Protocol):
    """What a running task may ask of its job."""

    job_id: uuid.UUID
    ahead: Any  # what ``Ahead.work`` did for this job before it began; usually None

    def progress(self, done: int, total: int, phase: str) -> None:
        """Record progress (throttled). Raises ``JobCancelled`` or ``LeaseLost``: let them pass."""

    def effect(self) -> AbstractContextManager[None]:
        """A transaction in which this attempt is proven to still own the job.

        Everything a task changes for good goes inside, once, at its end: a worker that was
        paused, and whose job another one took over, fails here instead of writing twice.
        """

    def part(self) -> AbstractContextManager[None]:
        """As ``effect`` for one part of the work, after which the job continues.

        What it wrote lasts, so the task must find it when it runs again and do the rest. Attempts
        that were lost before it no longer count.
        """

    def give_way(self) -> None:
        """Between two parts: raises ``JobYielded`` where more urgent work waits for this worker,
        or others' after a while. Let it pass: the job goes back into the queue."""

    def scratch(self) -> AbstractContextManager[Path]:
        """A temporary folder on the storage volume, so that a rename out of it is atomic."""


class UserError(Exception):
    """Work that can never succeed, for a reason the user can understand. Not retried."""

    def __init__(self, message: str, *, code: str = "failed") -> None:
        super().__init__(message)
        self.message, self.code = message, code


class JobCancelled(Exception):
    """The user asked to stop."""


class JobYielded(Exception):
    """Others go first; the job is in the queue again, and none of its attempts is spent."""


class LeaseLost(Exception):
    """Another worker took the job over; this attempt must leave no trace."""


JobResult = dict[str, str | int | float | list[str]]
"""What a task reports of its outcome, JSON-able; shown with the job. ``outcome``: why it ended well
without what was asked for, as ``no tissue``; shown in the place of "Done"."""

TaskFunction = Callable[..., JobResult | None]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Work done for several waiting jobs of a kind at once, before each runs as usual.

    It only saves time: each job has a lease, an effect and an end of its own. What it left
    undone, or raised, a job does or meets again on its own.

    Attributes:
        most: how many jobs a worker takes together, asked once it has one of them; 1: no others.
        alike: what jobs must have in common to go together, by their arguments; None: goes alone.
        work: from contexts and arguments of jobs alike to what each then finds as ``ahead``. A
            context raises ``JobCancelled`` or ``LeaseLost`` for its own job only.
    """

    most: Callable[[], int]
    alike: Callable[[Sequence[Arguments]], Sequence[Hashable]]
    work: Callable[[Sequence[tuple[JobContext, Arguments]]], Sequence[Any]]


Upgrade = Callable[[dict[str, Any], int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A registered kind of job.

    Attributes:
        title: what people read: "Prepare slide".
        priority: of its jobs, see ``Priority``.
        retry_on: exceptions worth another attempt; anything else ends the job at once.
        backoff_s: pause before attempt n+1 is ``backoff_s * 2 ** (n - 1)``, at most 10 minutes.
        version: of the arguments; jobs keep the one they were submitted with.
        upgrade: arguments of an older version, and that version, to present ones.
        ahead: how several waiting jobs of the kind are worked on together, if they are.
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
    ahead: Ahead | None = None


REGISTRY: dict[str, TaskSpec] = {}


def task(
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
    ahead: Ahead | None = None,
) -> Callable[[TaskFunction], TaskFunction]:
    """Register ``function(context, **ids)`` as the work of jobs of ``kind``.

    The function may run twice (a worker died): it must leave the same rows and bytes.

    Jobs outlive releases. Where the arguments change, raise ``version`` and give ``upgrade``, which
    turns those of waiting jobs into present ones.
    """
    if (version > 1) != (upgrade is not None):
        raise ValueError(f"job kind {kind!r}: version 1 has no upgrade, later ones need one")
    if queue not in QUEUES:
        raise ValueError(f"queue must be one of {QUEUES}, got {queue!r}")

    def register(function: TaskFunction) -> TaskFunction:
        known = REGISTRY.get(kind)
        if known and known.function.__module__ != function.__module__:
            raise ValueError(f"job kind {kind!r} is registered by {known.function.__module__}")
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
            ahead=ahead,
        )
        return function

    return register
