"""Checks of ``manage.py doctor``: problems of an installation, with what to do about each."""

from collections.abc import Callable

from portal.operations.doctor import machine, pages, running, servers
from portal.operations.doctor.findings import DoctorFinding, Level

CHECKS: tuple[Callable[[], list[DoctorFinding]], ...] = (
    servers.database,
    servers.broker,
    servers.cached,
    servers.mail,
    machine.storage,
    machine.sandbox,
    machine.libraries,
    machine.models,
    pages.front_end,
    running.settings_are_safe,
    running.of_database,
)


def examine() -> list[DoctorFinding]:
    """All findings, in the order of the checks."""
    return [finding for check in CHECKS for finding in check()]


__all__ = ["CHECKS", "DoctorFinding", "Level", "examine"]
