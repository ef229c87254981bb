"""``make demo``: the main job end to end on real input, through the services that users use."""
