"""``manage.py doctor``: what is missing, slow or wrong, and what to do about it, one line each.

Exit code 0 if nothing is wrong, 1 if something is; with ``--strict`` warnings count too.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from portal.config.doctor import DoctorFinding, examine

WORDS = {"ok": "ok     ", "warning": "WARNING", "error": "ERROR  "}


class Command(BaseCommand):
    """Examines this installation."""

    help = __doc__ or ""
    requires_system_checks = ()  # it must speak where a check would stop it

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How to print, what counts."""
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
    says = f"{WORDS[finding.level]} {finding.part}: {finding.says}"
    return f"{says} {finding.do}".rstrip()
