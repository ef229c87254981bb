"""``manage.py doctor``: what is missing, slow or wrong, and what to do about it."""

from collections.abc import Callable

from portal.config.doctor import machine, pages, running, servers
from portal.config.doctor.findings import DoctorFinding, Level

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
    """Every finding, in the order of the checks."""
    return [finding for check in CHECKS for finding in check()]


__all__ = ["CHECKS", "DoctorFinding", "Level", "examine"]
