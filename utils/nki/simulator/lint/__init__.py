"""What a kernel says in Python that runs here and may not compile for a device.

The simulator runs a kernel as ordinary Python; the NKI compiler reads a smaller language. `lint`
reads the source of a kernel and of the functions of its file that it calls:

>>> for each in lint_source("import nki\\n@nki.jit\\ndef kernel(x, stride=[1, 1]): ..."):
...     print(each)
<source>:3: does not compile: a kernel takes no list, and `[1, 1]` is one.
Fix: use a tuple, in the signature and at the call.
See: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/migration/index.html

It sees names, not values: a tensor that reaches Python through a list or an attribute is not known.
"""

from utils.nki.simulator.lint.source import RULES, Finding, Rule, lint, lint_source, warn

__all__ = ["RULES", "Finding", "Rule", "lint", "lint_source", "warn"]
