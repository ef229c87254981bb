"""Slides and stills behind one interface, and the tiles that are served of them."""
