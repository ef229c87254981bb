"""Context of a running task: lease, heartbeat, progress and time limit."""

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
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.worker import limits
from portal.jobs.worker.scratch import scratch_drop, scratch_make

logger = logging.getLogger(__name__)

BULK_TIME_SLICE_S = 20.0  # bulk work runs so long before it yields to others of its priority
PROGRESS_EVERY_S = 0.4  # smooth enough for a progress bar; limits the writes of a job
_open_contexts: list[LeasedJobContext] = []  # of this process; several during a batch


class LeasedJobContext:
    """``JobContext`` of a claimed job; a thread renews its lease while the task runs."""

    def __init__(self, job: Job) -> None:
        token = job.lease_token
        if token is None:
            raise LeaseLost(f"job {job.pk} is not claimed")
        self.job_id: uuid.UUID = job.pk
        self.token: uuid.UUID = token
        self.has_effect = False
        self.batch_result: Any = None
        self._lost = threading.Event()
        self._cancelled = threading.Event()
        self._stop = threading.Event()
        self._last: tuple[float, str] = (0.0, "")
        self._scratch: set[Path] = set()
        self._job, self._kind, self._title = job, job.kind, job.title
        self._began_s = time.monotonic()
        self._ends_s = self._began_s + limits.limit_s(job.kind)
        beat = partial(copy_context().run, self._send_heartbeats)  # logs carry the job's ids
        self._thread = threading.Thread(target=beat, daemon=True, name=f"lease-{job.pk}")

    def start(self) -> None:
        """Start the heartbeat unless it runs already; it runs until ``close``."""
        if self not in _open_contexts:
            limits.start_watchdog(limits.watchdog_s())
            _open_contexts.append(self)
            self._thread.start()

    def close(self) -> None:
        """Stop the heartbeat."""
        self._stop.set()
        if self not in _open_contexts:
            return
        _open_contexts.remove(self)
        if not _open_contexts:
            limits.stop_watchdog()
        self._thread.join(timeout=5)

    def __enter__(self) -> LeasedJobContext:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def progress(self, done: int, total: int, phase: str) -> None:
        """Write progress, at most every ``PROGRESS_EVERY_S`` within a phase.

        The text after a comma in ``phase`` is a detail and does not start a new phase.
        """
        self._raise_if_stopped()
        now = time.monotonic()
        last_at, last_phase = self._last
        is_last = 0 < total <= done  # a total of 0 is unknown, so no step is the last
        name = phase.partition(",")[0]
        if name == last_phase and now - last_at < PROGRESS_EVERY_S and not is_last:
            return
        self._last = (now, name)
        try:
            start = {} if name == last_phase else {"phase_at": Now(), "phase_from": done}
            self._renew(progress_done=done, progress_total=total, phase=phase[:80], **start)
        except DatabaseError as error:
            # A missing progress update is no reason to lose hours of work; effect() checks
            # whether the lease was lost in the meantime.
            if not database_is_away(error):
                raise
            logger.warning(
                "job %s: progress not written: the database does not answer", self.job_id
            )
            connection.close()
        self._raise_if_stopped()

    def _renew(self, **changes: Any) -> None:
        if not self.has_effect and not claims.renew_lease(self.job_id, self.token, **changes):
            self._lost.set()
        if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
            self._cancelled.set()

    @contextmanager
    def effect(self) -> Iterator[None]:
        """Transaction of the task's lasting changes, which also ends the job as succeeded.

        Raises:
            LeaseLost: Another worker took the job over.
            JobCancelled: The job was cancelled before anything was changed.
        """
        with self._leased_transaction():
            yield
            claims.end_job(
                claims.leased_job(self.job_id, self.token), self.job_id, JobState.SUCCEEDED
            )
        self.has_effect = True

    @contextmanager
    def part(self) -> Iterator[None]:
        """Transaction of one part of the work, after which the job continues.

        Raises:
            LeaseLost, JobCancelled: As in ``effect``.
        """
        with self._leased_transaction(attempts=1):
            yield

    @contextmanager
    def _leased_transaction(self, **changes: Any) -> Iterator[None]:
        with transaction.atomic():
            if not claims.renew_lease(
                self.job_id, self.token, **changes
            ):  # locks the row until commit
                raise LeaseLost(f"job {self.job_id}")
            if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
                raise JobCancelled
            yield

    def give_way(self) -> None:
        """Stop here if other jobs must go first, or if half of the attempt's time limit is over.

        Raises:
            JobYielded: The job goes back into the queue.
        """
        ran_s = time.monotonic() - self._began_s
        is_long = ran_s >= limits.limit_s(self._kind) / 2
        if is_long or claims.must_yield(self._job, ran_long=ran_s >= BULK_TIME_SLICE_S):
            raise JobYielded

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Temporary folder on the storage volume, removed afterwards.

        Raises:
            StorageFullError: The volume is full; the job is tried again later.
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

    def _send_heartbeats(self) -> None:
        while not self._stop.wait(self._pause_s()):
            limits.start_watchdog(limits.watchdog_s())
            try:
                if time.monotonic() >= self._ends_s and self._end_at_limit():
                    return
                self._renew()
                if self._lost.is_set():
                    return
            except DatabaseError:
                logger.warning("job %s: heartbeat not written", self.job_id, exc_info=True)
            finally:
                connection.close()

    def _pause_s(self) -> float:
        """Seconds until the next heartbeat, or until the time limit if that is earlier."""
        left_s = self._ends_s - time.monotonic()
        every_s: float = settings.TESSERA_JOB_LEASE_S / 3
        return min(every_s, left_s) if left_s > 0 else every_s

    def _end_at_limit(self) -> bool:
        """Fail the job and kill this process: nothing else stops a task that does not respond.

        Returns:
            False if the job has ended in the meantime or belongs to another worker.
        """
        if len(_open_contexts) > 1:  # which job of the batch is too slow shows when each runs alone
            return self._requeue_batch_at_limit()
        limit = limits.duration_text(limits.limit_s(self._kind))
        ended = claims.end_job(
            claims.leased_job(self.job_id, self.token),
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
        limits.kill_process()
        return True

    def _requeue_batch_at_limit(self) -> bool:
        """Requeue all jobs of the batch, then kill this process."""
        for context in list(_open_contexts):
            message = "It took too long in a batch; it continues alone."
            claims.requeue(
                claims.leased_job(context.job_id, context.token), delay_s=0, message=message
            )
        logger.error("job %s %s: reached its limit in a batch", self.job_id, self._kind)
        connection.close()
        limits.kill_process()
        return True
