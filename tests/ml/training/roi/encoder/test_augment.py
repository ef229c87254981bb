"""Looks and vertex dropout."""

from __future__ import annotations

import numpy as np

from ml.training.roi.encoder.augment import random_look, vertex_dropout, with_look


def test_zero_strength_changes_nothing():
    image = np.random.default_rng(0).integers(20, 245, (40, 40, 3), dtype=np.uint8)
    look = random_look(np.random.default_rng(1), stain=0.0, zoom=0.0)
    assert look.zoom == 1.0
    assert np.abs(with_look(image, look).astype(int) - image).max() <= 1


def test_a_colour_change_affects_tissue_and_leaves_background_white():
    image = np.full((4, 4, 3), 255, np.uint8)
    image[0] = (120, 60, 150)
    changed = with_look(image, random_look(np.random.default_rng(3), stain=0.3, zoom=0.2))
    assert np.abs(changed[0].astype(int) - image[0]).max() > 5
    assert changed[1:].min() >= 244


def test_dropout_leaves_the_requested_share_without_duplicates():
    rng = np.random.default_rng(0)
    for _ in range(50):
        vertices = vertex_dropout(rng, 40, drop=(0.2, 0.6), keep_at_least=2)
        assert 16 <= len(vertices) <= 32
        assert len(set(vertices.tolist())) == len(vertices) and vertices.max() < 40


def test_dropout_never_empties_a_graph():
    rng = np.random.default_rng(0)
    assert len(vertex_dropout(rng, 1, drop=(0.9, 0.9), keep_at_least=2)) == 1
    assert len(vertex_dropout(rng, 5, drop=(0.99, 0.99), keep_at_least=2)) == 2
