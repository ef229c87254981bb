"""Demo slides and videos with exact truth, made from pictures that scikit-image ships."""
