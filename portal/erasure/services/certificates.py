"""Certificates of erasures."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from django.apps import apps
from django.utils import timezone
from django.utils.crypto import salted_hmac

from ml.types import JsonObject
from portal.backups.models import Backup
from portal.core.storage_layout import Place, unknown_entries
from portal.erasure.models import Erasure
from portal.erasure.services.inventory import MIN_WORD_LENGTH, Inventory, files_left, rows_left
from portal.erasure.services.tables import WITH_CASE, rule_of
from portal.erasure.services.texts import words_left


def certificate_json(erasure: Erasure, inventory: Inventory, texts: dict[str, int]) -> JsonObject:
    """Certificate: erased data, person and time, and the result of the search afterwards."""
    left, files = rows_left(inventory), files_left(inventory)
    searched = [word for word in inventory.words if len(word) >= MIN_WORD_LENGTH]
    return {
        "format": 1,
        "erasure": str(erasure.pk),
        "lab": erasure.lab.slug,
        "requested_at": erasure.created_at.isoformat(),
        "requested_by": erasure.requested_by.email if erasure.requested_by else None,
        "reason": erasure.reason,
        "finished_at": timezone.now().isoformat(),
        "cases": erasure.case_ids,
        "names": sorted(_keyed_hash(word) for word in inventory.words),
        "rows": inventory.numbers | texts,
        "originals": [asdict(original) for original in inventory.originals],
        "places": {place.name.lower(): str(place.erased) for place in Place},
        "tables": {
            model._meta.label: str(rule_of(model) or WITH_CASE)
            for model in apps.get_models(include_auto_created=True)
        },
        "verified": {
            "is_gone": not left and not files,
            "rows_left": left,
            "files_left": files,
            "names_left_in": words_left(inventory),
            "names_too_short_to_search": len(inventory.words) - len(searched),
        },
        "backups": [
            {"destination": backup.destination, "name": backup.name}
            for backup in Backup.objects.filter(gone_at=None)
        ],
        "remains": {
            "backups": "until they are removed: backup --forget-erased",
            "audit_log": "its entries, which name cases and people by ids alone",
            "not_searched": unknown_entries(),
        },
    }


def certificate_sha256(certificate: JsonObject) -> str:
    """SHA-256 of a certificate without its own hash."""
    content = {name: value for name, value in certificate.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _keyed_hash(word: str) -> str:
    """Keyed hash of a word, comparable only with the word and the portal's secret key."""
    return salted_hmac("tessera.erasure", word, algorithm="sha256").hexdigest()
