"""Registration of frames, and agreement of mosaics with known motions."""
