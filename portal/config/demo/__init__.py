"""``make demo``: the main job end to end on real input, through the same services as a user's."""
