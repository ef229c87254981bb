"""Map of an archive: a layout of its vectors on a plane, close pairs and neighbours."""
