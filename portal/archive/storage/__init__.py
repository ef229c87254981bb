"""The storage volume: where bytes lie, how they are received, and the orphan folder."""
