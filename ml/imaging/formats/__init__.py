"""File formats by their bytes: sniffing, TIFF directories, ZIP archives, sets of several files."""
