"""``make screenshots``: the pictures of docs/screenshots, taken in a real browser after the demo.

From a demo of its own, without the development data: its licence lets nobody publish it here.
"""
