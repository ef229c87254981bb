"""What a run or an evaluation leaves for people: Markdown tables, figures of model cards."""
