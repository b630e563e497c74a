"""What a kernel says in Python that runs here and may not compile for a device.

The simulator runs a kernel as ordinary Python. The compiler of NKI 0.7 does too, but without
numbers; those before it read a smaller language (`before` in the table). `lint` reads the source of
a kernel and of the functions of its file that it calls:

>>> for each in lint_source("import nki\\n@nki.jit\\ndef kernel(x, cache={}): ..."):
...     print(each)  # doctest: +ELLIPSIS
<source>:3: compiles to something else: the default `{}` is shared by all calls, and compiled...
Fix: use None, a number or a tuple.
See: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/get-started/nki-language-guide.html

It sees names, not values: a tensor that reaches Python through a list or an attribute is not known.
"""

from utils.nki.simulator.lint.source import RULES, Finding, Rule, lint, lint_source, warn

__all__ = ["RULES", "Finding", "Rule", "lint", "lint_source", "warn"]
