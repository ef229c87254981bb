# Written by unasync.py from aio/__init__.py: change that one.
"""The client, a class for each subject; ``sync`` is written from ``aio``, see ``unasync.py``."""

from tessera_client.sync.client import Client

__all__ = ["Client"]
