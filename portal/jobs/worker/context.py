"""What a running task holds: its lease, its heartbeat, its progress."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from portal.core.tasks import JobCancelled, LeaseLost
from portal.jobs import ledger
from portal.jobs.models import Job, JobState

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 0.4  # a bar that moves; at most 2.5 writes a second and job


class LedgerContext:
    """The ``JobContext`` of a claimed job. A thread renews the lease while the task works."""

    def __init__(self, job: Job) -> None:
        token = job.lease_token
        if token is None:
            raise LeaseLost(f"job {job.pk} is not claimed")
        self.job_id: uuid.UUID = job.pk
        self.token: uuid.UUID = token
        self.has_effect = False
        self._lost = threading.Event()
        self._cancelled = threading.Event()
        self._stop = threading.Event()
        self._last: tuple[float, str] = (0.0, "")
        self._thread = threading.Thread(target=self._beat, daemon=True, name=f"lease-{job.pk}")

    def __enter__(self) -> LedgerContext:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def progress(self, done: int, total: int, phase: str) -> None:
        """Write progress at most every 0.4 s and at each new phase; see ``JobContext``."""
        self._raise_if_stopped()
        now = time.monotonic()
        last_at, last_phase = self._last
        if phase == last_phase and now - last_at < PROGRESS_EVERY_S and done < total:
            return
        self._last = (now, phase)
        changes = {"progress_done": done, "progress_total": total, "phase": phase[:80]}
        if not self.has_effect and not ledger.renew(self.job_id, self.token, **changes):
            self._lost.set()
        self._look_for_cancel()
        self._raise_if_stopped()

    @contextmanager
    def effect(self) -> Iterator[None]:
        """The task's lasting changes and the job's success, in one transaction.

        Raises:
            LeaseLost: another worker took the job over.
            JobCancelled: the user asked to stop before anything was changed.
        """
        with transaction.atomic():
            if not ledger.renew(self.job_id, self.token):  # locks the row until commit
                raise LeaseLost(f"job {self.job_id}")
            if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
                raise JobCancelled
            yield
            ledger.end(ledger.held(self.job_id, self.token), self.job_id, JobState.SUCCEEDED)
        self.has_effect = True

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder on the storage volume, removed afterwards."""
        parent = Path(settings.TESSERA_STORAGE) / "scratch"
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{self.job_id}-", dir=parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _raise_if_stopped(self) -> None:
        if self._lost.is_set():
            raise LeaseLost(f"job {self.job_id}")
        if self._cancelled.is_set():
            raise JobCancelled

    def _look_for_cancel(self) -> None:
        if Job.objects.filter(pk=self.job_id, cancel_requested=True).exists():
            self._cancelled.set()

    def _beat(self) -> None:
        every_s = settings.TESSERA_JOB_LEASE_S / 3
        while not self._stop.wait(every_s):
            try:
                if not self.has_effect and not ledger.renew(self.job_id, self.token):
                    self._lost.set()
                    return
                self._look_for_cancel()
            except DatabaseError:
                logger.warning("job %s: heartbeat not written", self.job_id, exc_info=True)
            finally:
                connection.close()
