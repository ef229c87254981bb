"""``make screenshots``: pictures of docs/guide and docs/screenshots, from a real browser.

From a demo of its own, without the development data: its licence lets nobody publish it here.
"""
