"""Tessera's pixels and models. Django-free: importable alone by notebooks and GPU boxes."""

from __future__ import annotations

__version__ = "0.1.0"
