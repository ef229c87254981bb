"""Chaos: real processes, killed at random while people work; then the books are checked."""
