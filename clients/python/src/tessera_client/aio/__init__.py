"""The client, a class for each subject; ``sync`` is written from ``aio``, see ``unasync.py``."""

from tessera_client.aio.client import AsyncClient

__all__ = ["AsyncClient"]
