"""``make demo``: the main workflow end to end on real input, through the services."""
