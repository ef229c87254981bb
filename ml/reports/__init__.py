"""Reports of runs and evaluations: Markdown tables, figures of model cards."""
