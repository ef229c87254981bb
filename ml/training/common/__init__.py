"""What every training shares."""
