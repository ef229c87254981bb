"""The network that finds text burnt into images: drawn letters, training, measurement."""
