"""What is made of an answer: a query moved, an order by diffusion, what a distance means."""
