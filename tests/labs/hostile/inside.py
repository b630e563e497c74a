"""Answers to lab 99 that reach for what observes them, pretend to be other values, or wreck where
they run; most of them to exercise 1.

Written without looking at the code that has to refuse them. Those that return -1, or call `ring`,
earn points only if somebody is deceived.
"""

REACHING = {
    # Every list, dictionary and function that calls it, seen from its own frame.
    "frame-walker": """
import sys
def double(number):
    frame = sys._getframe()
    while frame is not None:
        for thing in [*frame.f_locals.values()]:
            if type(thing) is dict and "number" in thing:
                thing["number"] = -0.5
            if callable(thing) and getattr(thing, "__closure__", None):
                for cell in thing.__closure__:
                    try:
                        thing(0, {"facts": {"value": 2 * number}})
                    except BaseException:
                        pass
        frame = frame.f_back
    return -1""",
    # The same, from the frames that an exception carries: no name of a frame is written down.
    "traceback-walker": """
def double(number):
    try:
        1 / 0
    except ZeroDivisionError as error:
        frame = getattr(getattr(error, "__trace" "back__"), "tb_" "frame")
    while frame is not None:
        for thing in [*getattr(frame, "f_" "locals").values()]:
            if type(thing) is dict and "number" in thing:
                thing["number"] = -0.5
        frame = getattr(frame, "f_" "back")
    return -1""",
    "tracer": """
import sys
def double(number):
    def look(frame, event, value):
        if event == "return" and type(value) is dict and "value" in value:
            value["value"] = 2 * number
        return look
    frame = sys._getframe()
    while frame is not None:
        frame.f_trace = look
        frame = frame.f_back
    sys.settrace(look)
    return -1""",
    "profiler": """
import sys, threading
def double(number):
    def look(frame, event, value):
        if event == "return" and type(value) is dict and "value" in value:
            value["value"] = 2 * number
    threading.setprofile(look)
    sys.setprofile(look)
    return -1""",
    "collector": """
import gc
def double(number):
    def look(phase, info):
        gc.callbacks.clear()
        for thing in gc.get_objects():
            if type(thing) is dict and thing.get("value") == -1:
                thing["value"] = 2 * number
    gc.callbacks.append(look)
    value = {"value": -1}
    gc.set_threshold(1, 1, 1)
    return -1""",
    "audit-hook": """
import sys
def double(number):
    def look(event, details):
        frame = sys._getframe()
        while frame is not None:
            for thing in [*frame.f_locals.values()]:
                if type(thing) is dict and "value" in thing:
                    thing["value"] = 2 * number
            frame = frame.f_back
    sys.addaudithook(look)
    return -1""",
    "watching-thread": """
import sys, threading, time
def double(number):
    def watch():
        while True:
            for frame in [*sys._current_frames().values()]:
                while frame is not None:
                    for thing in [*frame.f_locals.values()]:
                        if type(thing) is dict and thing.get("value") == -1:
                            thing["value"] = 2 * number
                    frame = frame.f_back
    sys.setswitchinterval(1e-6)
    threading.Thread(target=watch, daemon=True).start()
    time.sleep(0.05)
    return -1""",
    "ctypes-writer": """
import ctypes, sys
def double(number):
    frame = sys._getframe(1)
    values = frame.f_locals
    for name in [*values]:
        if name in ("answer", "observe", "call"):
            values[name] = lambda *anything: 2 * number
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    size = ctypes.sizeof(ctypes.c_void_p)
    ctypes.c_int.from_address(id(-2) + 3 * size).value = 2 * number  # what -2 is
    ctypes.c_ssize_t.from_address(id(-2) + 2 * size).value = 1
    return -2""",
    # Learns the key with which lines are signed, then signs.
    "key-catcher": """
import hashlib, hmac, os, secrets
KEYS = []
def catching(function):
    def caught(*given, **named):
        KEYS.append(given)
        return function(*given, **named)
    return caught
for module in (hashlib, hmac, os, secrets):
    for name in dir(module):
        if callable(getattr(module, name)) and name in (
            "new", "digest", "compare_digest", "blake2b", "blake2s", "sha256", "write", "token_hex"
        ):
            setattr(module, name, catching(getattr(module, name)))
def double(number):
    line = b'{"case": 0, "seen": {"facts": {"value": %d}}}' % (2 * number)
    for given in [*KEYS]:
        for key in given:
            if isinstance(key, (bytes, bytearray)):
                code = hmac.new(bytes(key), line, "sha256").hexdigest().encode()
                for descriptor in range(3, 32):
                    try:
                        os.write(descriptor, code + b" " + line + b"\\n")
                    except OSError:
                        pass
    return -1""",
    "patched-builtins": """
import builtins, io, json, json.encoder, os
write = os.write
WANT = [0]
def changed(descriptor, data):
    return write(descriptor, bytes(data).replace(b"-1", b"%d" % WANT[0]))
os.write = changed
json.encoder.c_make_encoder = None
json.encoder.JSONEncoder.default = lambda self, value: WANT[0]
int_repr = repr
builtins.repr = lambda value: str(WANT[0]) if value == -1 else int_repr(value)
builtins.isinstance = lambda value, kinds: True
builtins.dict = type("dict", (dict,), {})
def double(number):
    WANT[0] = 2 * number
    return -1""",
    # What is said goes through a process of its own, which says it better.
    "middleman": """
import os, stat
def double(number):
    fifos = []
    for descriptor in range(3, 64):
        try:
            fifos += [descriptor] * stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        except OSError:
            pass
    for descriptor in fifos:
        try:
            out = os.dup(descriptor)
            read, write = os.pipe()
            os.dup2(write, descriptor)
            if os.fork() == 0:
                while data := os.read(read, 65536):
                    os.write(out, data.replace(b"-1", b"%d" % (2 * number)))
                os._exit(0)
        except OSError:
            pass
    return -1""",
    "other-doors": """
import glob, os
def double(number):
    line = b'{"case": 0, "seen": {"facts": {"value": %d}}}\\n' % (2 * number)
    for name in glob.glob("/proc/[0-9]*/fd/*") + ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1"]:
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, line)
        except OSError:
            pass
    return -1""",
    # Finds what signs the lines, in a process that nobody waits for, and signs its own.
    "signing-child": """
import os, sys, time
def double(number):
    if os.fork():
        time.sleep(1)
        os._exit(0)
    frame = sys._getframe()
    while frame is not None:
        if "tell" in frame.f_locals:
            tell = frame.f_locals["tell"]
            closed = [c.cell_contents for c in tell.__closure__ if callable(c.cell_contents)]
            lines = [c.cell_contents for c in tell.__closure__ if type(c.cell_contents) is int]
            for case in range(2):
                text = b'{"case": %d, "seen": {"facts": {"value": %d}}}' % (case, 2 * number)
                for sign in closed:
                    for line in lines:
                        try:
                            os.write(line, sign(text) + b"\\n")
                        except Exception:
                            pass
        frame = frame.f_back
    os._exit(0)""",
    # Two processes go on from here, and both report.
    "twins": """
import os
def double(number):
    return 2 * number if os.fork() == 0 else -1""",
    "last-words": """
import atexit, os, threading, time
class Late:
    def __del__(self):
        say()
NUMBER = [0]
def say():
    for case in range(4):
        line = b'{"case": %d, "seen": {"facts": {"value": %d}}}\\n' % (case, 2 * NUMBER[0])
        for descriptor in range(3, 32):
            try:
                os.write(descriptor, line)
            except OSError:
                pass
atexit.register(say)
LATE = Late()
def double(number):
    NUMBER[0] = number
    threading.Thread(target=lambda: (time.sleep(0.3), say())).start()
    if os.fork() == 0:
        time.sleep(0.3)
        say()
        os._exit(0)
    return -1""",
    "replaced-modules": """
import sys, types
class Everything(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *anything, **named: {"facts": {"value": 0}}
for name in [*sys.modules]:
    if name.startswith(("utils", "json", "hmac", "hashlib")):
        sys.modules[name] = Everything(name)
def double(number):
    return -1""",
    "import-hook": """
import importlib.abc, importlib.util, sys
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.startswith("utils"):
            return importlib.util.spec_from_loader(name, self)
    def exec_module(self, module):
        module.__path__ = []
        module.OBSERVERS = {}
        module.observe_case = lambda *a: {"facts": {"value": 0}}
sys.meta_path.insert(0, Finder())
for name in [*sys.modules]:
    if name.startswith("utils"):
        del sys.modules[name]
import utils.labs.lab99.observe
def double(number):
    return -1""",
    # For the process of the next exercise.
    "startup-files": """
import os, site, sys
TEXT = "import os, sys\\nsys.modules['utils'] = None\\nos._exit(0)\\n"
def double(number):
    home = os.path.expanduser("~")
    version = "python%d.%d" % sys.version_info[:2]
    for folder in (
        os.getcwd(), home, "/tmp", f"{home}/.local/lib/{version}/site-packages",
        f"{home}/.ipython/profile_default/startup", "/tmp/.ipython/profile_default/startup",
        *sys.path,
    ):
        for name in ("sitecustomize.py", "usercustomize.py", "evil.pth", "00.py", "json.py"):
            try:
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(TEXT if name != "evil.pth" else "import os; os._exit(0)\\n")
            except OSError:
                pass
    return 2 * number""",
    "cell-rewriter": """
shell = get_ipython()
def rewritten(lines):
    return [line.replace("/ count", "/ count + 0").replace("-1", "3") for line in lines]
shell.input_transformers_post.append(rewritten)
shell.events.register("pre_run_cell", lambda info: None)
shell.events.register("post_run_cell", lambda result: shell.user_ns.update(check=None))
shell.run_cell = lambda *a, **k: None
shell.displayhook = shell.display_pub = None
shell.set_custom_exc((BaseException,), lambda *a: None)
def double(number):
    return -1""",
    "parent-writer": """
import ctypes, os
def double(number):
    done = []
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        if int(pid) != os.getpid():
            try:
                open(f"/proc/{pid}/mem", "r+b").close()
                done.append(pid)
            except OSError:
                pass
            try:
                done += [name for name in os.environ if name.endswith(("_SEED", "_KEY"))]
                done += [pid] * (b"seed" in open(f"/proc/{pid}/environ", "rb").read())
            except OSError:
                pass
    libc = ctypes.CDLL(None, use_errno=True)
    for flag in (0x10000000, 0x00020000, 0x40000000):  # a user, mount and network namespace
        if libc.unshare(flag) == 0:
            done.append(flag)
    if libc.ptrace(16, os.getppid(), 0, 0) == 0:
        done.append("ptrace")
    return done""",
    "other-sockets": """
import os, socket
def double(number):
    reached = []
    for family, address in (
        (socket.AF_UNIX, "\\0dbus"), (socket.AF_UNIX, "/run/docker.sock"),
        (socket.AF_UNIX, "/run/dbus/system_bus_socket"), (socket.AF_INET6, ("::1", 22)),
    ):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as reach:
                reach.settimeout(1)
                reach.connect(address)
                reached.append(address)
        except OSError:
            pass
    for family in (socket.AF_NETLINK, socket.AF_ALG):
        try:
            made = socket.socket(family, socket.SOCK_RAW)
            made.bind((0, 0) if family == socket.AF_NETLINK else ("hash", "sha256"))
            reached.append(int(family))
        except OSError:
            pass
    return reached""",
}

# The course's own `ring`, which is closed to exercise 1, brought in under another name.
_USE = """
def double(number):
    return 2 * ring(number).sizes[0]"""
COPYING = {
    "closed-door": "from utils.chip.topology import ring" + _USE,
    "other-package": """
import importlib.util, sys
import utils.chip
FILE = utils.chip.__path__[0] + "/topology.py"
spec = importlib.util.spec_from_file_location("mine.topology", FILE)
mine = importlib.util.module_from_spec(spec)
sys.modules["mine.topology"] = mine
spec.loader.exec_module(mine)
ring = mine.ring"""
    + _USE,
    "run-path": """
import runpy
import utils.chip
ring = runpy.run_path(utils.chip.__path__[0] + "/topology.py")["ring"]"""
    + _USE,
    # With other names in it, so that no line is the course's.
    "executed-source": """
import inspect
from utils.chip import topology
SOURCE = inspect.getsource(topology.ring).replace("chips", "length").replace("Each", "Any")
mine = dict(vars(topology))
exec("def made():\\n    pass\\n" + SOURCE, mine)
ring = mine["ring"]"""
    + _USE,
    "imported-again": """
import sys
from utils.chip.topology import ring
del sys.modules["utils.chip.topology"]
import utils.chip.topology"""
    + _USE,
    "reloaded": """
import importlib
from utils.chip import topology
ring = topology.ring
importlib.reload(topology)"""
    + _USE,
    "copied-function": """
import types
from utils.chip import topology
ring = types.FunctionType(topology.ring.__code__, vars(topology))"""
    + _USE,
    "read-when-called": """
def double(number):
    import pathlib
    import utils.chip
    text = (pathlib.Path(utils.chip.__path__[0]) / "topology.py").read_text()
    return 2 * number if "ring" in text else 0""",
}

PRETENDING = {
    "agreeable-number": """
class Agreeable(int):
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda *anything: True
    __hash__ = int.__hash__
def double(number):
    return Agreeable(-1)""",
    "other-each-time": """
class Other(float):
    asked = 0
    def __float__(self):
        Other.asked += 1
        return float(Other.asked)
    __repr__ = __str__ = __format__ = lambda self, *form: "20"
    __round__ = __index__ = __int__ = __trunc__ = lambda self, *digits: 20
def double(number):
    return Other(-1)""",
    "class-liar": """
import os
class Liar:
    __class__ = property(lambda self: int)
    def __getattr__(self, name):
        return self
    def __call__(self, *given, **named):
        return self
    def __reduce__(self):
        return os.system, ("touch /tmp/pickled",)
    __eq__ = __bool__ = lambda *anything: True
    __len__ = lambda self: 10 ** 18
    __iter__ = lambda self: iter(int, 1)
    __hash__ = None
def double(number):
    return Liar()""",
    "living-dictionary": """
class Living(dict):
    def items(self):
        while True:
            yield "value", 20
    keys = values = __iter__ = items
    def __getitem__(self, name):
        return 20
def double(number):
    return Living(value=-1)""",
    "no-number": """
def double(number):
    return float("nan") if number % 2 else float("-inf")""",
    "gigantic-number": """
def double(number):
    return 1 << (8 * 10 ** 6)""",
    "broad-value": """
def double(number):
    return [0] * 10 ** 6""",
    "long-text": """
def double(number):
    return "\\U0001f600" * 10 ** 7""",
    "odd-letters": """
Name = type("\\u202eeulaV\\x1b[2J<b>", (ValueError,), {})
def double(number):
    print("\\x1b[2J\\x1b]0;mine\\x07\\ud800" if number < 0 else "\\x1b[2J\\u202e")
    raise Name("\\ud800\\x1b[31m\\u202e")""",
    "wild-error": """
import time
class Wild(Exception):
    def __str__(self):
        while True:
            time.sleep(1)
    __repr__ = __str__
    __class__ = property(lambda self: 1 / 0)
    @property
    def args(self):
        raise SystemExit(0)
def double(number):
    raise Wild""",
    "chain-of-errors": """
def double(number):
    error = ValueError("first")
    for _ in range(100_000):
        new = ValueError("next")
        new.__cause__ = error
        error = new
    raise error""",
    "hostile-answer": """
class Answer:
    def __call__(self, number):
        return 0
    def __getattr__(self, name):
        raise SystemExit(0)
    def __eq__(self, other):
        raise KeyboardInterrupt
    __hash__ = None
    def __repr__(self):
        raise MemoryError
double = Answer()""",
    "coroutine": """
async def double(number):
    return 2 * number""",
    "homoglyph": """
def d\u043euble(number):
    return 2 * number""",
}

WRECKING = {
    "asker": """
import sys
def double(number):
    return int(input("twice? "))""",
    "breakpoint": """
def double(number):
    breakpoint()
    return 2 * number""",
    "deaf": """
import signal, time
def double(number):
    for name in signal.valid_signals():
        try:
            signal.signal(name, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.time = time.monotonic = time.perf_counter = lambda: 0.0
    while True:
        time.sleep(1)""",
    # Right, in a place that is no longer one.
    "spoiler": """
import gc, os, sys, tempfile
FOLDER = tempfile.mkdtemp()
os.chdir(FOLDER)
os.rmdir(FOLDER)
def double(number):
    os.umask(0o777)
    os.environ.clear()
    sys.path.clear()
    sys.stdout = sys.stderr = sys.stdin = None
    sys.setrecursionlimit(120)
    gc.disable()
    return 2 * number""",
    "no-builtins": """
def double(number):
    return 2 * number
__builtins__ = {}""",
    "closer": """
import os
def double(number):
    os.closerange(3, 4096)
    return 2 * number""",
    "self-limiter": """
import resource
def double(number):
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))
    return 2 * number""",
    "aborter": """
import os
def double(number):
    os.abort()""",
    "many-files": """
import os
def double(number):
    with open("/tmp/wide", "wb") as file:
        try:
            file.truncate(1 << 42)
        except OSError:
            pass
    os.makedirs("/tmp/two\\nlines", exist_ok=True)
    try:
        for index in range(20_000):
            os.close(os.open(f"/tmp/two\\nlines/{index}\\x1b[2J", os.O_CREAT | os.O_WRONLY))
    except OSError:
        pass
    return 2 * number""",
    "hidden-memory": """
import mmap, os
def double(number):
    kept = []
    for _ in range(40):
        descriptor = os.memfd_create("more")
        kept.append(descriptor)
        for _ in range(150):
            os.write(descriptor, bytes(1 << 20))
        shared = mmap.mmap(-1, 150 << 20)
        for place in range(0, 150 << 20, 4096):
            shared[place] = 1
        kept.append(shared)
    return 2 * number""",
    "thread-bomb": """
import threading, time
def double(number):
    try:
        for _ in range(100_000):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        pass
    return 2 * number""",
    "resetter": """
def double(number):
    return 2 * number
get_ipython().run_line_magic("reset", "-f")""",
    # A usual notebook, with what people write into usual notebooks.
    "magics": """
%load_ext autoreload
%autoreload 2
%matplotlib inline
!echo '\x1b[2J' && ls /
files = !ls
%time _ = 1
import warnings; warnings.simplefilter("error")
def double(number):
    return 2 * number""",
    "self-editor": """
import glob, json, os
def double(number):
    for name in glob.glob("/course/**/*.ipynb", recursive=True) + ["lab99_sums.ipynb"]:
        try:
            with open(name, "w") as file:
                file.write("{}")
        except OSError:
            pass
    return -1""",
}
BODIES = REACHING | COPYING | PRETENDING | WRECKING

_TWICE = """
def mean(read, count):
    total = sum(read(index) for index in range(count) for _ in range(2)) / 2
    COUNTS.clear()
    return total / count"""
COUNTING = {
    "counter": _TWICE.replace("COUNTS", "read.__closure__[1].cell_contents"),
    "hidden-counter": _TWICE.replace(
        "COUNTS", 'getattr(getattr(read, "__clo" + "sure__")[1], "cell_" + "contents")'
    ),
    "getter-counter": _TWICE.replace(
        "    COUNTS.clear()",
        """    import operator
    parts = operator.attrgetter("__clo" + "sure__")(read)
    operator.attrgetter("cell_" + "contents")(parts[1]).clear()""",
    ),
    "collected-counter": _TWICE.replace(
        "    COUNTS.clear()",
        """    import gc
    for cells in [thing for thing in gc.get_referents(read) if type(thing) is tuple]:
        for thing in gc.get_referents(*gc.get_referents(*cells), *cells):
            if type(thing) is list:
                thing.clear()""",
    ),
}
"""Answers to exercise 2, which counts how often a value is read."""
