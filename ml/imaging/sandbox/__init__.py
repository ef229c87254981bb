"""Run one function on a file from a user in a confined child process."""
