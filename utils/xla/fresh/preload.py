"""What the server of `utils.xla.fresh` imports before it forks. It must use no device."""

from utils.xla.defaults import set_defaults

set_defaults()

import torch_xla  # noqa: E402, F401
import torch_xla.core.xla_model  # noqa: E402, F401
import torch_xla.debug.metrics  # noqa: E402, F401
import torch_xla.runtime  # noqa: E402, F401
