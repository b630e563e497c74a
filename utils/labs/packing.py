"""Records as one short text: they cross a process border that takes little, and hold many words.

A record of some thousand instructions is repetitive; packed it is about a tenth as long.
"""

import base64
import binascii
import json
import zlib
from typing import Any

MOST_CHARS = 1 << 16
"""Of a packed record, so that some of them fit into what an exercise may report."""
MOST_BYTES = 1 << 26
"""Of an unpacked one: what a few characters made up by somebody can become is not limited."""


def pack(plain: Any) -> str:
    """Plain data as a text. The order of keys is kept, because it says which operand is which.

    >>> unpack(pack({"code": [0] * 1000})) == {"code": [0] * 1000}
    True
    """
    return base64.b85encode(zlib.compress(json.dumps(plain).encode())).decode()


def unpack(text: Any) -> Any:
    """What `pack` was given. ValueError if the text is not one of its own."""
    if not isinstance(text, str):
        raise ValueError(f"a packed record is a text, not a {type(text).__name__}")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(base64.b85decode(text), MOST_BYTES)
        if not unpacker.eof:
            raise ValueError(f"it is cut off, or holds more than {MOST_BYTES} bytes")
        return json.loads(plain)
    except (ValueError, RecursionError, zlib.error, binascii.Error) as error:
        raise ValueError(f"not a packed record: {error}") from error
