"""Audit a source tree for what will not port from CUDA PyTorch to XLA and Neuron.

`audit(path)` reads Python files, notebooks and files of requirements; it never imports or runs
them. On the command line: `python -m utils.audit PATH`. A comment `# audit: ignore` silences its
line, `# audit: ignore[cuda-move]` one rule there.

It reads each file by itself. It does not see a device name that is put together at run time, one
that comes from a configuration file or from another module, nor what an installed package does.

May import: facts, course. Used by: cost (decision), labs, lesson 02, and engineers without the
course.

>>> [each.rule for each in audit_source("import torch\\nx = torch.ones(2).cuda()").findings]
['cuda-move']
"""

from utils.audit.audit_report import Broken, Finding, Report
from utils.audit.audited_files import audit, audit_source
from utils.audit.rules import RULES, Rule

__all__ = ["RULES", "Broken", "Finding", "Report", "Rule", "audit", "audit_source"]
