"""Is a region like those of other patients with its label? Protocols, rivals and signals."""
