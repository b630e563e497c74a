"""`python -m utils.xla.dryrun.child REQUEST`: the process inside the bounds. Not for people.

It writes what it has seen after each step, so that a program that is stopped has a report, too.
"""

import errno
import faulthandler
import json
import os
import re
import runpy
import sys
import sysconfig
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from utils.xla.defaults import set_defaults
from utils.xla.dryrun.bounds import Bounds, limit_this_process


def main() -> None:
    """Run the request that the file named by the first argument holds."""
    began = time.monotonic()
    request = json.loads(Path(sys.argv[1]).read_text())
    result = Path(request["result"])
    limits = Bounds(**request["bounds"])
    limit_this_process(limits)
    # Where it hangs is the last thing that a program prints before it is stopped for its time.
    faulthandler.dump_traceback_later(limits.seconds * 0.9)
    set_defaults()
    # Late: they load torch_xla, which needs the defaults.
    import torch_xla

    from utils.xla.dryrun.lines import Lines
    from utils.xla.dryrun.redirect import redirect_devices
    from utils.xla.dryrun.watch import Watch

    def write(seen: dict[str, Any], ended: str = "") -> None:
        half = result.with_suffix(".half")
        half.write_text(json.dumps({**seen, "run": lines.data(), "ended": ended}))
        half.replace(result)

    def stopping(thread: int) -> None:
        hanging = watch.hanging(thread)
        write({**watch.data(), "hanging": hanging})

    def enough(ended: str) -> None:
        write(watch.data(), ended)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # whatever the script would do about an exception

    log = Path(os.environ["PT_XLA_DEBUG_FILE"])
    device, lines = torch_xla.device(), Lines(Path(request["root"]))
    own = _has_markers(request)
    watch = Watch(_call.__code__, request["steps"], log, own, write, enough)
    left = max(0.0, limits.seconds * 0.85 - (time.monotonic() - began))
    last = threading.Timer(left, stopping, [threading.get_ident()])
    last.daemon = True
    last.start()
    with watch, redirect_devices(device, watch.note), lines:
        ended = _call(request, watch)
        watch.end(has_failed=ended.startswith("it raised"))
        write(watch.data(), ended)
    sys.stdout.flush()
    os._exit(0)


def _has_markers(request: dict[str, Any]) -> bool:
    if "script" not in request:
        return False
    text = Path(request["script"]).read_text(errors="replace")
    return bool(re.search(r"\b(mark_step|torch_xla\.sync|optimizer_step|MpDeviceLoader)\b", text))


def _call(request: dict[str, Any], watch: Any) -> str:
    """Run the program; returns how it ended."""
    try:
        if "script" in request:
            os.environ["PYTHONPATH"] = request["pythonpath"]  # for what the script starts
            _run_script(request["script"], request["arguments"])
        else:
            import cloudpickle  # late: only functions need it

            function, arguments = cloudpickle.loads(Path(request["function"]).read_bytes())
            for _ in range(request["steps"]):
                function(*arguments)
                watch.next_call()
    except SystemExit as left:
        return f"it left with {left.code!r}" if left.code else "it ended itself"
    except BaseException as error:  # whatever a script can raise belongs into the report
        traceback.print_exc()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if _of_user(f.filename)]
        at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"it raised {type(error).__name__}: {_said(error)[:300]}{at}{_hint(error)}"
    return "it ended itself"


def _said(error: BaseException) -> str:
    """The line of an error that says most."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    # With the traceback of another process: what that raised is in its last line.
    return lines[-1] if type(error).__name__ == "ProcessRaisedException" else lines[0]


def _hint(error: BaseException) -> str:
    """What a dry run has to do with an error."""
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return _READ_ONLY
    if isinstance(error, KeyError) and error.args and error.args[0] in _OF_TORCHRUN:
        return f" (torchrun sets this: start the dry run with {_AS_TORCHRUN} before it)"
    return ""


_AS_TORCHRUN = "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
_OF_TORCHRUN = {word.partition("=")[0] for word in _AS_TORCHRUN.split()}


_READ_ONLY = (
    " (in a dry run: it can write in the copy of your folder, and new files in /tmp and at home,"
    " which are removed; all else is read-only. Let the script write below its own folder)"
)


def _of_user(file: str) -> bool:
    libraries = tuple({sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")})
    instruments = str(Path(__file__).parents[1])
    return not file.startswith((*libraries, instruments, "<frozen"))


def _run_script(script: str, arguments: list[str]) -> None:
    sys.argv = [script, *arguments]
    # A script may have a package `utils` of its own, and gets that. Where the dry run is installed,
    # packages that the script needs lie beside it.
    root = Path(__file__).parents[3]
    hidden = ("", str(root)) if (root / "course.py").exists() else ("",)
    if os.getcwd() in sys.path:
        sys.path.remove(os.getcwd())  # `python -m` puts it there, and `python script.py` does not
    sys.path[:] = [str(Path(script).parent), *(p for p in sys.path if p not in hidden)]
    name = __package__.partition(".")[0]
    for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[module]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
