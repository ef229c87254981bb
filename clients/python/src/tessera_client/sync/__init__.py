# Written by unasync.py from aio/__init__.py: change that one.
"""The client as classes of one idea each; ``sync`` is written from ``aio``, see ``unasync.py``."""

from tessera_client.sync.client import Client

__all__ = ["Client"]
