"""What a running task holds: its lease, its heartbeat, its progress, and the time it may take."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from portal.core.connections import database_is_away
from portal.core.disk import require_room
from portal.core.tasks import JobCancelled, JobYielded, LeaseLost
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker import limits
from portal.jobs.worker.scratch import scratch_drop, scratch_make

logger = logging.getLogger(__name__)

SLICE_S = 20.0  # how long bulk work runs before others of its priority get their turn
PROGRESS_EVERY_S = 0.4  # a bar that moves; at most 2.5 writes a second and job
_OPEN: list[LedgerContext] = []  # of this process: several while jobs are worked on together


class LedgerContext:
    """The ``JobContext`` of a claimed job. A thread renews the lease while the task works."""

    def __init__(self, job: Job) -> None:
        token = job.lease_token
        if token is None:
            raise LeaseLost(f"job {job.pk} is not claimed")
        self.job_id: uuid.UUID = job.pk
        self.token: uuid.UUID = token
        self.has_effect = False
        self.ahead: Any = None
        self._lost = threading.Event()
        self._cancelled = threading.Event()
        self._stop = threading.Event()
        self._last: tuple[float, str] = (0.0, "")
        self._scratch: set[Path] = set()
        self._job, self._kind, self._title = job, job.kind, job.title
        self._began_s = time.monotonic()
        self._ends_s = self._began_s + limits.limit_s(job.kind)
        beat = partial(copy_context().run, self._beat)  # logs with the ids of the job
        self._thread = threading.Thread(target=beat, daemon=True, name=f"lease-{job.pk}")

    def start(self) -> None:
        """Hold the lease from now on, until ``close``; once is enough."""
        if self not in _OPEN:
            limits.exit_when_silent(limits.silence_s())
            _OPEN.append(self)
            self._thread.start()

    def close(self) -> None:
        """Stop holding the lease."""
        self._stop.set()
        if self not in _OPEN:
            return
        _OPEN.remove(self)
        if not _OPEN:
            limits.exit_no_more()
        self._thread.join(timeout=5)

    def __enter__(self) -> LedgerContext:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def progress(self, done: int, total: int, phase: str) -> None:
        """Write progress at most every 0.4 s and at each new phase; see ``JobContext``.

        What follows a comma in a phase are details that may change from step to step.
        """
        self._raise_if_stopped()
        now = time.monotonic()
        last_at, last_phase = self._last
        is_last = 0 < total <= done  # a total of 0 is not known yet: no step is its last
        name = phase.partition(",")[0]
        if name == last_phase and now - last_at < PROGRESS_EVERY_S and not is_last:
            return
        self._last = (now, name)
        try:
            begun = {} if name == last_phase else {"phase_at": Now(), "phase_from": done}
            self._tell(progress_done=done, progress_total=total, phase=phase[:80], **begun)
        except DatabaseError as error:
            # Hours of work are not thrown away for a bar that stands still. Whether the lease was
            # lost meanwhile is proven by effect().
            if not database_is_away(error):
                raise
            logger.warning(
                "job %s: progress not written: the database does not answer", self.job_id
            )
            connection.close()
        self._raise_if_stopped()

    def _tell(self, **changes: Any) -> None:
        if not self.has_effect and not ledger.renew(self.job_id, self.token, **changes):
            self._lost.set()
        self._look_for_cancel()

    @contextmanager
    def effect(self) -> Iterator[None]:
        """The task's lasting changes and the job's success, in one transaction.

        Raises:
            LeaseLost: another worker took the job over.
            JobCancelled: the user asked to stop before anything was changed.
        """
        with self._proven():
            yield
            ledger.end(ledger.held(self.job_id, self.token), self.job_id, JobState.SUCCEEDED)
        self.has_effect = True

    @contextmanager
    def part(self) -> Iterator[None]:
        """One part of the work, in one transaction; see ``JobContext``.

        Raises:
            LeaseLost, JobCancelled: as ``effect``.
        """
        with self._proven(attempts=1):
            yield

    @contextmanager
    def _proven(self, **changes: Any) -> Iterator[None]:
        with transaction.atomic():
            if not ledger.renew(self.job_id, self.token, **changes):  # locks the row until commit
                raise LeaseLost(f"job {self.job_id}")
            if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
                raise JobCancelled
            yield

    def give_way(self) -> None:
        """Let others go first where they should; see ``JobContext``.

        Raises:
            JobYielded: also once half of the time that an attempt may take is over.
        """
        ran_s = time.monotonic() - self._began_s
        is_long = ran_s >= limits.limit_s(self._kind) / 2
        if is_long or ledger.must_give_way(self._job, ran_long=ran_s >= SLICE_S):
            raise JobYielded

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder on the storage volume, removed afterwards.

        Raises:
            StorageFullError: the volume has no room for work; the job is tried again later.
        """
        require_room()
        folder = scratch_make(self.job_id)
        self._scratch.add(folder)
        try:
            yield folder
        finally:
            scratch_drop([folder])
            self._scratch.discard(folder)

    def _raise_if_stopped(self) -> None:
        if self._lost.is_set():
            raise LeaseLost(f"job {self.job_id}")
        if self._cancelled.is_set():
            raise JobCancelled

    def _look_for_cancel(self) -> None:
        if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
            self._cancelled.set()

    def _beat(self) -> None:
        while not self._stop.wait(self._pause_s()):
            limits.exit_when_silent(limits.silence_s())
            try:
                if time.monotonic() >= self._ends_s and self._end_at_limit():
                    return
                self._tell()
                if self._lost.is_set():
                    return
            except DatabaseError:
                logger.warning("job %s: heartbeat not written", self.job_id, exc_info=True)
            finally:
                connection.close()

    def _pause_s(self) -> float:
        """Until the next heartbeat, or the limit if that comes first."""
        left_s = self._ends_s - time.monotonic()
        every_s: float = settings.TESSERA_JOB_LEASE_S / 3
        return min(every_s, left_s) if left_s > 0 else every_s

    def _end_at_limit(self) -> bool:
        """End the job as failed, then this process: nothing else stops a task that hears nobody.

        False if the job has ended in the meantime, or belongs to another worker.
        """
        if len(_OPEN) > 1:  # whose fault it is shows where each runs alone
            return self._part_at_limit()
        limit = limits.in_words(limits.limit_s(self._kind))
        ended = ledger.end(
            ledger.held(self.job_id, self.token),
            self.job_id,
            JobState.FAILED,
            error_code="time-limit",
            error_message=(
                f"Stopped after {limit}, the longest that “{self._title}” may take. Try a smaller "
                "input, or ask the people who run this portal to raise TESSERA_JOB_LIMITS."
            ),
        )
        if not ended:
            return False
        logger.error("job %s %s: stopped at its limit of %s", self.job_id, self._kind, limit)
        scratch_drop(self._scratch)
        connection.close()
        limits.end_process()
        return True

    def _part_at_limit(self) -> bool:
        """Give back all jobs that this process works on together, then end it."""
        for context in list(_OPEN):
            message = "It took too long together with others; it continues alone."
            ledger.requeue(ledger.held(context.job_id, context.token), delay_s=0, message=message)
        logger.error(
            "job %s %s: reached its limit while running with others", self.job_id, self._kind
        )
        connection.close()
        limits.end_process()
        return True
