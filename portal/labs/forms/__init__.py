"""Forms of the lab's pages; ``sign_in`` has the forms configured for allauth."""
