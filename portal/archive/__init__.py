"""Cases, assets and canvases."""
