"""Adjacent sections: aligned by their outlines, paired cell by cell."""
