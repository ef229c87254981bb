"""Key point matching on images warped by known transforms, and on unrelated images."""
