"""``manage.py doctor``: problems of an installation and what to do about them, one line each.

Exit code 0 if nothing is wrong, 1 if something is; with ``--strict`` warnings count too.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from portal.operations.doctor import DoctorFinding, examine

WORDS = {"ok": "ok     ", "warning": "WARNING", "error": "ERROR  "}


class Command(BaseCommand):
    """Examine this installation."""

    help = __doc__ or ""
    requires_system_checks = ()  # it must run where a check would stop it

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("--json", action="store_true", help="a JSON list, for programs")
        parser.add_argument("--strict", action="store_true", help="warnings count as errors")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print and exit."""
        findings = examine()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2))
        else:
            for finding in findings:
                self.stdout.write(_line(finding))
        counts = {"error", "warning"} if options["strict"] else {"error"}
        if any(finding.level in counts for finding in findings):
            sys.exit(1)


def _line(finding: DoctorFinding) -> str:
    message = f"{WORDS[finding.level]} {finding.part}: {finding.message}"
    return f"{message} {finding.remedy}".rstrip()
