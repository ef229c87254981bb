"""Review of ROIs by members of the lab."""
