"""Files without what could name a patient: a copy that keeps every pixel as it was stored."""
