"""A tiny lab in plain Python, for the tests of checks, generation and running."""
