"""What a file is, by its bytes: sniffing, TIFF directories, ZIP archives, sets of several files."""
