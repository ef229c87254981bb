"""What pixels reveal of a person: text burnt into them, faces, views from outside the body."""
