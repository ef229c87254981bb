"""The web server: uvicorn, with limits on clients, and Django in threads behind it."""
