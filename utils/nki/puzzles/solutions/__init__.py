"""Our solutions, a file for each step; each function is a kernel with the name of its puzzle.

A file stands alone, as one that is handed in does.
"""
