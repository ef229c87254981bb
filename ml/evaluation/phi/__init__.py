"""Protected health information in pixels, found and falsely flagged."""
