"""nki.compiler.kernel_builder: importable; nothing is compiled here."""

from utils.nki.simulator import surface as _surface


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
