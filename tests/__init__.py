"""Tests. A package only so that settings and commands of the tests have a module name."""
