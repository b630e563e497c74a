"""The Jupyter server of `course.py start` ends notebooks that are idle, and keeps the last three.

Opening the whole course in tabs would otherwise keep a kernel with torch_xla for each of them.
"""

from datetime import UTC, datetime

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from traitlets import Bool, Integer

from utils.course.running import IDLE_S, KEPT


class FewKernels(AsyncMappingKernelManager):
    """Every minute, ends the kernels that did nothing for 20 minutes, except for the last used."""

    cull_idle_timeout = Integer(IDLE_S, config=True)
    cull_interval = Integer(60, config=True)
    cull_connected = Bool(True, config=True)  # a notebook in an open tab is connected

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End this kernel if it is idle, unless it is one of the last used."""

        def last_used(item: str) -> datetime:
            starting = datetime.now(UTC)
            return getattr(self._kernels[item], "last_activity", starting)

        if kernel_id not in sorted(self._kernels, key=last_used)[-KEPT:]:
            await super().cull_kernel_if_idle(kernel_id)
