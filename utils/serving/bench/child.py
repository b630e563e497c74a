"""The process of `utils.serving.bench.cold`: a script, so that Python reaches its first line at
once."""

import time

ENTERED = time.perf_counter()

if __name__ == "__main__":
    import sys

    kind, warmup, repeats, answer, began = sys.argv[1:]

    from utils.xla import env

    env.set_defaults()
    import cloudpickle  # reads the function that makes the model
    import torch  # noqa: F401

    if kind == "xla":
        import torch_xla  # noqa: F401
    IMPORTED = time.perf_counter()

    # The instruments are no part of what they measure: they come when the clock is not looked at.
    from pathlib import Path

    import msgspec

    from utils.serving.bench import cold
    from utils.xla import devices

    payload = sys.stdin.buffer.read()

    def open_device() -> devices.Device:
        device = devices.get(kind)
        _ = device.torch
        return device

    start = cold.stages(
        process_s=ENTERED - float(began),
        import_s=IMPORTED - ENTERED,
        open_device=open_device,
        build=lambda device: cloudpickle.loads(payload)(device),
        warmup=int(warmup),
        repeats=int(repeats),
    )
    Path(answer).write_bytes(msgspec.json.encode(start))
