"""De-identified copies of files; every pixel stays as it was stored."""
