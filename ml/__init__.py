"""Image processing and models of Tessera, without Django: importable in notebooks and on GPU
machines.
"""

from __future__ import annotations

__version__ = "0.1.0"
