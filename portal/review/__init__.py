"""Review: what the people of a lab say of each other's ROIs."""
