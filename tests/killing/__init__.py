"""A Django app whose job kinds exist to be killed; installed by ``tests.killing.settings`` only."""
