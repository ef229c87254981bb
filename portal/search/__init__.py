"""Similar cases, queries, explanations and reports."""
