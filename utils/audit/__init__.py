"""Audit a source tree for what will not port to Trainium: from CUDA PyTorch, from older Neuron
software, and for what makes graphs slow.

`audit(path)` reads Python files, notebooks, files of requirements, shell scripts, Dockerfiles and
YAML files; it never imports or runs them. On the command line: `python -m utils.audit PATH`. A
comment `# audit: ignore` silences its line, `# audit: ignore[cuda-move]` one rule there.

What is an error for one target is nothing for another: `target` is one of `TARGETS`, torchneuron
where none is given. `facts/data/porting.yaml` and `porting_legacy.yaml` hold the rules, their
advice and what they are for each target.

Values are followed through names, loops and functions, also of other files of the tree where that
is cheap. A device name that is put together at run time, or read from a configuration file, is not
seen, nor what an installed package does.

May import: facts, course. Used by: cost (decision), labs, lesson 02, and engineers without the
course.

>>> [item.rule for item in audit_source("import torch\\nx = torch.ones(2).cuda()").findings]
['cuda-move']
>>> old = "import torch_xla.core.xla_model as xm\\nxm.mark_step()"
>>> [item.rule for item in audit_source(old).findings], audit_source(old, target="xla").findings
(['xla-import', 'xla-step'], ())
"""

from utils.audit.audit_report import Broken, Finding, Report
from utils.audit.audited_files import audit, audit_source
from utils.audit.rules import RULES, TARGETS, Rule

__all__ = ["RULES", "TARGETS", "Broken", "Finding", "Report", "Rule", "audit", "audit_source"]
