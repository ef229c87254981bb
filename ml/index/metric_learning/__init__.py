"""Metric learning on a lab's archive: split by patient, train, evaluate on test patients."""
