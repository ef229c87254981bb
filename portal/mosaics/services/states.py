"""Mosaics and follow-ups fail and start again alike: when their job ends, or on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.archive.models import ItemState
from portal.mosaics.models import Followup, Mosaic

ENDED_BADLY = ("failed", "cancelled")


def state_again(row: Mosaic | Followup) -> bool:
    """Back from *failed*; False if another caller did it, or where it has not failed."""
    fresh = {"state": ItemState.PREPARING, "error_code": "", "error_message": ""}
    changed = type(row)._default_manager.filter(pk=row.pk, state=ItemState.FAILED).update(**fresh)
    if changed:
        row.state, row.error_code, row.error_message = ItemState.PREPARING, "", ""
    return changed == 1


def state_failed(row: Mosaic | Followup, payload: Mapping[str, Any]) -> bool:
    """Set a mosaic or follow-up whose job ended without a result to *failed*.

    Rows in the trash are set as well, so that they are not shown as in progress once restored.

    Args:
        payload: Payload of ``job.ended``, with the error's code and message.
    Returns:
        False if the row is ready already; it is not changed then.
    """
    waiting = type(row).all_objects.filter(pk=row.pk).exclude(state=ItemState.READY)
    changed = waiting.update(
        state=ItemState.FAILED,
        error_code=str(payload.get("error_code") or payload["state"]),
        error_message=str(payload.get("error_message") or "The work was cancelled."),
    )
    return changed == 1


def ended_badly(payload: Mapping[str, Any], *, kind: str) -> bool:
    """Return whether ``job.ended`` tells of a failed or cancelled job of this kind."""
    return payload.get("kind") == kind and payload.get("state") in ENDED_BADLY
