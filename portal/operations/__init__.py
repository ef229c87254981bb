"""Commands, health, metrics and web server of a portal."""
