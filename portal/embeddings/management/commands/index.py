"""``manage.py index``: show, verify, rebuild or switch the index files of searches.

``switch`` builds the indexes that are not yet in the engine that ``TESSERA_INDEX_ENGINE`` names.
Each scope switches when its new index is complete; a run that was stopped continues when repeated.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from portal.embeddings.indexes import MILVUS, Scope
from portal.embeddings.selectors.index_files.snapshots import snapshot_latest
from portal.embeddings.selectors.index_files.verification import (
    index_scopes,
    index_state_of,
    index_verify,
)
from portal.embeddings.services.indexes import index_build_submit
from portal.jobs.models import ENDED_STATES, Job
from portal.jobs.worker.reaper import reap
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

_POLL_S = 0.5  # interval of checks for an expired lease
MIN_RECALL = 0.99  # at least 99 of 100 true neighbours are found


class Command(BaseCommand):
    """Print a line per lab and encoder. ``verify`` exits with 1 if a check fails."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("action", choices=("status", "verify", "rebuild", "switch"))
        parser.add_argument("--lab", default="", help="short name of one lab; all labs if left out")
        parser.add_argument(
            "--sample", type=int, default=64, help="verify: how many vectors to search with"
        )
        parser.add_argument(
            "--now", action="store_true", help="rebuild: in this process, not by the worker"
        )
        parser.add_argument(
            "--older-than",
            type=int,
            default=0,
            metavar="MINUTES",
            help="rebuild: only files at least this old; a stopped run continues this way",
        )

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action and print its result."""
        scopes = list(self._scopes(options["lab"]))
        if not scopes:
            self.stdout.write("There are no embeddings, so there is nothing to index.")
        if options["sample"] < 1:
            raise CommandError(f"--sample: expected at least 1, got {options['sample']}")
        bad = 0
        for scope, lab in scopes:
            name = f"{lab.name}, {scope.encoder}"
            if action == "status":
                self._status(name, scope)
            elif action == "verify":
                bad += not self._verify(name, scope, options["sample"])
            elif action == "switch":
                bad += not self._switch(name, scope)
            else:
                oldest = timezone.now() - timedelta(minutes=options["older_than"])
                bad += not self._rebuild(name, scope, is_now=options["now"], before=oldest)
        if bad:
            raise CommandError(f"{bad} of {len(scopes)} are not correct; see above.")

    def _scopes(self, slug: str) -> Iterator[tuple[Scope, Lab]]:
        if slug and not Lab.objects.filter(slug=slug).exists():
            raise CommandError(f"There is no lab {slug!r}.")
        return (
            scope_and_lab for scope_and_lab in index_scopes() if slug in ("", scope_and_lab[1].slug)
        )

    def _status(self, name: str, scope: Scope) -> None:
        state = index_state_of(scope)
        if state.snapshot is None:
            self.stdout.write(f"{name}: no file; {state.newer:,} searched from the database")
            return
        snapshot = state.snapshot
        age = (timezone.now() - snapshot.read_at).total_seconds() / 3600
        where = (
            "on milvus" if snapshot.engine == MILVUS else f"{snapshot.size_bytes / 2**20:,.1f} MiB"
        )
        self.stdout.write(
            f"{name}: version {snapshot.version}, {snapshot.kind}, {snapshot.count:,} vectors, "
            f"{where}, built in {snapshot.seconds:,.1f} s, {age:,.1f} h old, "
            f"recall {snapshot.recall:.4f} when built; {state.newer:,} newer, "
            f"{state.masked:,} masked"
            + ("" if state.is_readable else "; CANNOT BE READ, the database is searched")
        )

    def _verify(self, name: str, scope: Scope, sample: int) -> bool:
        verdict = index_verify(scope, sample=sample)
        if verdict is None:
            has_file = snapshot_latest(scope) is not None
            status = "the file cannot be read" if has_file else "no file yet, so nothing to verify"
            self.stdout.write(f"{name}: {status}")
            return not has_file
        self.stdout.write(
            f"{name}: version {verdict.snapshot.version}, {verdict.checked:,} checked, "
            f"{verdict.missing} missing, {verdict.orphans} orphans, "
            f"{verdict.altered} of {verdict.sampled} altered, recall {verdict.recall:.4f}"
        )
        return verdict.is_good(MIN_RECALL)

    def _rebuild(self, name: str, scope: Scope, *, is_now: bool, before: datetime) -> bool:
        last = snapshot_latest(scope)
        if last is not None and last.created_at > before:
            self.stdout.write(f"{name}: version {last.version} is new enough")
            return True
        version = last.version + 1 if last else 1
        job = index_build_submit(scope=scope)
        if not is_now:
            self.stdout.write(f"{name}: version {version} is waiting for the worker ({job.state})")
            return True
        return self._run(name, scope, version, job)

    def _switch(self, name: str, scope: Scope) -> bool:
        engine = settings.TESSERA_INDEX_ENGINE
        last = snapshot_latest(scope)
        if last is not None and last.engine == engine:
            self.stdout.write(f"{name}: version {last.version} is in {engine}")
            return True
        version = last.version + 1 if last else 1
        return self._run(name, scope, version, index_build_submit(scope=scope))

    def _run(self, name: str, scope: Scope, version: int, job: Job) -> bool:
        """Run the build in this process and return whether its version is in use.

        The build of a killed process is taken over when its lease ends.
        """
        while job.state not in ENDED_STATES:
            if not job_run(job.pk):
                self.stderr.write(
                    f"{name}: {job.worker or 'a worker'} runs it; waiting", ending="\n"
                )
                reap()
                time.sleep(_POLL_S)
            job.refresh_from_db()
        after = snapshot_latest(scope)
        is_built = after is not None and after.version >= version
        status = f"version {version} is in use" if is_built else f"{job.state}: {job.error_message}"
        self.stdout.write(f"{name}: {status}")
        return is_built
