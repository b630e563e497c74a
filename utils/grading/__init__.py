"""Grade a folder of submissions, each in a sandbox."""
