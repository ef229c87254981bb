"""Are matches right? Images warped by known transforms, and images with nothing in common."""
