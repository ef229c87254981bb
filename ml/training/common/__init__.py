"""Parts shared by all trainings."""
