"""The same search on Qdrant: vectors on servers of their own, sharded and replicated.

``open_qdrant`` gives a ``VectorIndex``; ``QdrantServer`` says where it is. Needs the extra
``qdrant``. A url that is ``:memory:`` or begins with ``folder:`` is the client's local mode, in
this process, for tests and trials.
"""

from __future__ import annotations

from ml.index.qdrant.engine import QdrantConfig, QdrantIndex, drop_group, open_qdrant
from ml.index.qdrant.filling import Filling
from ml.index.qdrant.server import QdrantServer

__all__ = ["Filling", "QdrantConfig", "QdrantIndex", "QdrantServer", "drop_group", "open_qdrant"]
