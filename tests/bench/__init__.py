"""``make bench``: measures on this machine and writes docs/benchmarks.md and .json.

Speed is reported as a ratio to a named alternative of the same run.
"""
