"""``make bench-gpu``: what a GPU does, against the processors of the same machine."""
