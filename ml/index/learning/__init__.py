"""A metric learned from a lab's archive: patients split by a rule, learned, compared, judged."""
