"""One request and its answer: who asks, what may come in, how files go out."""
