"""The storage volume: locations of files, their reception, and the orphan folder."""
