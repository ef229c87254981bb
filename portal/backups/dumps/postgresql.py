"""Dumps of PostgreSQL in the custom format of pg_dump, loaded by pg_restore and psql."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from django.db import connection
from psycopg.conninfo import make_conninfo

from portal.core.errors import ConflictError

_BEGIN = b"""
BEGIN;
SET LOCAL lock_timeout = '30s';
SET LOCAL client_min_messages = warning;
DO $$
DECLARE statement text;
BEGIN
  FOR statement IN
    SELECT format('DROP TABLE %I CASCADE', tablename) FROM pg_tables
    WHERE schemaname = current_schema()
    UNION ALL
    SELECT format('DROP ROUTINE %s', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace
      AND oid NOT IN (SELECT objid FROM pg_depend WHERE deptype = 'e')
  LOOP
    EXECUTE statement;
  END LOOP;
END $$;
"""


@contextmanager
def dump(path: Path) -> Iterator[Any]:
    """Write the database to a file; see ``portal.backups.dumps.Engine``."""
    wrapper = connection.copy()
    wrapper.ensure_connection()
    server: Any = wrapper.connection
    try:
        server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (snapshot,) = server.execute("SELECT pg_export_snapshot()").fetchone()
        options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
        command = [_program("pg_dump"), *options, f"--file={path}", _address()]
        with TemporaryFile() as errors:
            process = subprocess.run(command, env=_environment(), stderr=errors, check=False)
            _require_done("pg_dump", process.returncode, errors)
        yield lambda query: server.execute(query).fetchall()
    finally:
        wrapper.close()


def load(path: Path) -> None:
    """Replace all tables by those of a dump; see ``portal.backups.dumps.Engine``.

    The statements of pg_restore run in a transaction that is committed only if pg_restore reached
    the end of the archive.
    """
    script = [_program("pg_restore"), "--file=-", "--no-owner", "--no-privileges", str(path)]
    client = [_program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", _address()]
    environment = _environment()
    connection.close()
    with (
        TemporaryFile() as errors,
        TemporaryFile() as client_errors,
        subprocess.Popen(
            client,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=client_errors,
        ) as psql,
        subprocess.Popen(script, stdout=subprocess.PIPE, stderr=errors) as pg_restore,
    ):
        statements = cast("IO[bytes]", pg_restore.stdout)
        target = cast("IO[bytes]", psql.stdin)
        with suppress(BrokenPipeError), target:  # psql stopped at an error, which is raised below
            target.write(_BEGIN)
            shutil.copyfileobj(statements, target)
            if pg_restore.wait() == 0:
                target.write(b"COMMIT;\n")
        statements.close()
        _require_done("psql", psql.wait(), client_errors)
        _require_done("pg_restore", pg_restore.wait(), errors)


def _program(name: str) -> str:
    """Path of a client program that is at least as new as the server.

    Raises:
        ConflictError: The program is not installed, or is older than the server.
    """
    server = int(connection.pg_version) // 10000  # type: ignore[attr-defined]
    path = shutil.which(name)
    if path is None:
        raise ConflictError(
            f"{name} is not on PATH. Install PostgreSQL's client programs, version {server}.",
            code="backup-program-missing",
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\(PostgreSQL\) (\d+)", version)
    if match is None or int(match[1]) < server:
        raise ConflictError(
            f"{path} is of version {match[1] if match else 'unknown'}, but the server is PostgreSQL"
            f" {server}. Put the client programs of version {server} on PATH.",
            code="backup-program-old",
        )
    return path


def _address() -> str:
    """Connection string without the password: arguments of a process are visible to others."""
    params = connection.get_connection_params()
    names = set(params) - {"password", "prepare_threshold", "client_encoding"}
    return make_conninfo(**{n: params[n] for n in names if isinstance(params[n], str | int)})


def _environment() -> dict[str, str]:
    """Environment with the database's password."""
    password = str(connection.settings_dict["PASSWORD"])
    return os.environ | ({"PGPASSWORD": password} if password else {})


def _require_done(program: str, status: int, errors: IO[bytes]) -> None:
    if status:
        errors.seek(0)
        lines = errors.read(10_000).decode(errors="replace").strip().splitlines()
        raise ConflictError(
            f"{program} failed: {' '.join(lines[:3]) or f'exit status {status}'}",
            code="backup-program-failed",
        )
