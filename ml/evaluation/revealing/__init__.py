"""How well what pixels reveal is found: text, faces, frames outside the body."""
