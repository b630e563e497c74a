"""A kernel of Jupyter for tests, which runs cells as a front end does and returns their outputs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from utils.course import kernel_server
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment

SECONDS = 60


class Kernel:
    """A running kernel."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, source: str, cell_id: str = "") -> list[dict[str, Any]]:
        """The outputs of a cell: contents of messages, each with its `msg_type`."""
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        request = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell_id} if cell_id else {}
        )
        self.client.shell_channel.send(request)
        outputs: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != request["header"]["msg_id"]:
                continue
            kind = message["msg_type"]
            if kind == "status" and message["content"]["execution_state"] == "idle":
                return outputs
            if kind not in ("status", "execute_input"):
                outputs.append({"msg_type": kind, **message["content"]})


@contextmanager
def start_kernel(variables: dict[str, str]) -> Iterator[Kernel]:
    """A kernel of this Python in the course's folder, with these environment variables too."""
    from jupyter_client.manager import start_new_kernel

    with kernel_environment(server=kernel_server.socket_path()) as environment:
        command = ["python3"]
        manager, client = start_new_kernel(
            kernel_name=command[0], env=environment | variables, cwd=str(ROOT)
        )
        try:
            yield Kernel(client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
