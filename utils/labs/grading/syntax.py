"""Parse Python source in one thread at a time.

Submissions are graded in threads, and CPython 3.11 counts the depth of a syntax tree for all of
them together: two at once can end in a SystemError (python/cpython issue 106905).
"""

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(source: str) -> ast.Module:
    """Like `ast.parse`, and raises what that raises."""
    with _one_at_a_time:
        return ast.parse(source)
