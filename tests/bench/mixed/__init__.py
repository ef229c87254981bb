"""Mixed load: people who pan, save and search at once, against the whole portal over HTTP."""

from tests.bench.mixed.run import mixed_load, mixed_load_on_servers

__all__ = ["mixed_load", "mixed_load_on_servers"]
