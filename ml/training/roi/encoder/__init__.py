"""Training of the slide encoder: pools of tissue, the metric, the graph part."""
