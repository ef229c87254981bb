"""Protected health information in pixels: identifying text, faces, frames outside the body."""
