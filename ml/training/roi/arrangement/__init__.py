"""Training of graph encoders by the arrangement of tissue in large regions."""
