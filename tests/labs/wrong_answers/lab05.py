"""Wrong answers to lab 05 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

BY_HAND = """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    infinity = (2**exponent_bits - 1) << mantissa_bits
    codes = []
    for x in numbers:
        sign = math.copysign(1, x) < 0
        exponent = max(math.frexp(abs(x))[1] - 1, 1 - bias)
        steps = round(math.ldexp(abs(x), mantissa_bits - exponent))
        code = ((exponent + bias - 1) << mantissa_bits) + steps
        code = min(code, infinity)
        codes.append(sign << (exponent_bits + mantissa_bits) | code)
    return codes
"""

STOCHASTIC = """
def round_stochastically(x, rng):
    noise = rng.integers(0, 2**16, x.shape, dtype=np.uint32)
    bits = x.view(np.uint32) + noise
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)
"""

PRODUCT = """
def tiled_product(a, b, engine):
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], engine.depth):
        stop = start + engine.depth
        total += engine.multiply(a[:, start:stop], b[start:stop])
    return total
"""

MASTER = """
def update(weights, gradients, state, lr):
    masters = state.setdefault("masters", [w.float() for w in weights])
    for w, gradient, master in zip(weights, gradients, masters, strict=True):
        master -= lr * gradient.float()
        w.copy_(master)
"""

BY_CHANCE = """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        new = w.float() - lr * gradient.float()
        noise = (torch.rand_like(new) * 2**16).to(torch.int32)
        bits = new.view(torch.int32) + noise
        w.copy_((bits & -(2**16)).view(torch.float32))
"""

SCALES = """
def choose_scales(tensors):
    scales = []
    for x in tensors:
        largest = float(abs(x).max())
        scales.append(2.0 ** math.floor(math.log2(240 / largest)) if largest else 1.0)
    return scales
"""

BLOCKS = """
def mx_quantise(x, element):
    dtype, largest = ELEMENTS[element]
    emax = math.floor(math.log2(largest))
    blocks = x.reshape(len(x), -1, 32)
    sizes = abs(blocks).max(axis=2)
    exponents = np.frexp(sizes)[1] - 1 - emax
    exponents = np.where(sizes > 0, exponents, -127).clip(-127, 127)
    scaled = np.ldexp(blocks, -exponents[:, :, None])
    elements = scaled.clip(-largest, largest).astype(dtype).astype(np.float32)
    return (exponents + 127).astype(np.uint8), elements.reshape(x.shape)
"""

RIGHT = {
    "ex1": BY_HAND,
    "ex2": STOCHASTIC,
    "ex3": PRODUCT,
    "ex4": MASTER,
    "ex5": SCALES,
    "ex6": BLOCKS,
}


def _hand(*changes: tuple[str, str]) -> str:
    return changed(BY_HAND, *changes)


def _random(*changes: tuple[str, str]) -> str:
    return changed(STOCHASTIC, *changes)


def _product(*changes: tuple[str, str]) -> str:
    return changed(PRODUCT, *changes)


def _master(*changes: tuple[str, str]) -> str:
    return changed(MASTER, *changes)


def _scales(*changes: tuple[str, str]) -> str:
    return changed(SCALES, *changes)


def _blocks(*changes: tuple[str, str]) -> str:
    return changed(BLOCKS, *changes)


EXACT_STEPS = "round(math.ldexp(abs(x), mantissa_bits - exponent))"
STEPS = "math.ldexp(abs(x), mantissa_bits - exponent)"
TOWARDS = """
def round_stochastically(x, rng):
    bits = x.view(np.uint32)
    low = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    high = ((bits | np.uint32(0xFFFF)) + np.uint32(1)).view(np.float32)
    between = (bits & np.uint32(0xFFFF)) / 2**16
    return np.where(CHOICE, high, low)
"""
WITH_NOISE = """
def round_stochastically(x, rng):
    exponent = np.frexp(np.where(x == 0, 1, x))[1] - 1
    step = np.ldexp(np.float64(1), exponent - 7)
    noise = NOISE
    return (HOW * step).astype(np.float32)
"""


def _chosen(choice: str) -> str:
    return changed(TOWARDS, ("CHOICE", choice))


def _noise(noise: str, how: str) -> str:
    return changed(WITH_NOISE, ("NOISE", noise), ("HOW", how))


LOOP = "    for start in range(0, a.shape[1], engine.depth):"
ADD = "        total += engine.multiply(a[:, start:stop], b[start:stop])"
PAIRS = "for w, gradient, master in zip(weights, gradients, masters, strict=True):"
NUMBERED = "for k, (gradient, master) in enumerate(zip(gradients, masters, strict=True)):"
SCALE = "2.0 ** math.floor(math.log2(240 / largest))"
EXPONENTS = "exponents = np.frexp(sizes)[1] - 1 - emax"
CAST = ".astype(dtype).astype(np.float32)"

WRONG = [
    # ex1
    (
        "lab05.ex1",
        "truncation",
        _hand((EXACT_STEPS, f"int({STEPS})")),
        "the bits that do not fit are cut off",
    ),
    (
        "lab05.ex1",
        "rounded down",
        _hand((EXACT_STEPS, f"(math.ceil if sign else math.floor)({STEPS})")),
        "rounded down, towards minus infinity",
    ),
    (
        "lab05.ex1",
        "ties away from zero",
        _hand((EXACT_STEPS, f"math.floor({STEPS} + 0.5)")),
        "a number in the middle went away from zero",
    ),
    (
        "lab05.ex1",
        "ties towards zero",
        _hand((EXACT_STEPS, f"math.ceil({STEPS} - 0.5)")),
        "ties: -0.71875 became 0xb3: a number in the middle went towards zero",
    ),
    (
        "lab05.ex1",
        "carry lost",
        _hand(
            (
                f"        steps = {EXACT_STEPS}\n",
                f"        steps = {EXACT_STEPS}\n"
                "        if steps == 2 ** (mantissa_bits + 1):\n"
                "            steps = 2**mantissa_bits\n",
            )
        ),
        "lost the carry",
    ),
    (
        "lab05.ex1",
        "no subnormals",
        _hand(
            (
                "        code = min(code, infinity)\n",
                "        code = min(code, infinity)\n"
                "        if abs(x) < 2.0 ** (1 - bias):\n            code = 0\n",
            )
        ),
        "numbers below the smallest normal one became zero",
    ),
    (
        "lab05.ex1",
        "a hidden one in subnormals",
        """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    infinity = (2**exponent_bits - 1) << mantissa_bits
    codes = []
    for x in numbers:
        sign = math.copysign(1, x) < 0
        exponent = math.frexp(abs(x))[1] - 1
        steps = round(math.ldexp(abs(x), mantissa_bits - exponent)) - 2**mantissa_bits
        code = min((max(exponent + bias, 0) << mantissa_bits) + steps, infinity)
        codes.append(sign << (exponent_bits + mantissa_bits) | code)
    return codes
""",
        "a subnormal number has no hidden one",
    ),
    (
        "lab05.ex1",
        "saturates",
        _hand(("min(code, infinity)", "min(code, infinity - 1)")),
        "what lies beyond the largest value was set to it (saturated)",
    ),
    (
        "lab05.ex1",
        "infinity at once",
        _hand(
            (
                "        code = min(code, infinity)\n",
                "        code = min(code, infinity)\n"
                "        if abs(x) > (2 - 2.0**-mantissa_bits) * 2.0**bias:\n"
                "            code = infinity\n",
            )
        ),
        "less than half a step above the largest value it is still the nearest",
    ),
    (
        "lab05.ex1",
        "the OCP format's codes",
        _hand(("min(code, infinity)", "min(code, infinity + 2**mantissa_bits - 2)")),
        "from half a step above the largest value on the result is infinity",
    ),
    (
        "lab05.ex1",
        "rounded twice",
        _hand(
            (
                f"steps = {EXACT_STEPS}",
                f"steps = round(round({STEPS} * 4) / 4)",
            )
        ),
        "rounded twice",
    ),
    (
        "lab05.ex1",
        "sign forgotten",
        _hand(("sign << (exponent_bits + mantissa_bits) | code", "code")),
        "the sign bit is missing",
    ),
    (
        "lab05.ex1",
        "no sign for a zero",
        _hand(
            (
                "        codes.append(sign",
                "        sign = sign and code > 0\n        codes.append(sign",
            )
        ),
        "a number that rounds to zero keeps its sign bit",
    ),
    (
        "lab05.ex1",
        "bias too large by one",
        _hand(("bias = 2 ** (exponent_bits - 1) - 1", "bias = 2 ** (exponent_bits - 1)")),
        "the exponent is stored with the bias 2**(exponent_bits - 1) - 1",
    ),
    (
        "lab05.ex1",
        "values in place of codes",
        """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    return [float(np.float32(x).astype(ml_dtypes.bfloat16)) for x in numbers]
""",
        "return the bit pattern as an int",
    ),
    (
        "lab05.ex1",
        "a library's formats only",
        """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    dtype, code = {
        (4, 3): (ml_dtypes.float8_e4m3, np.uint8),
        (8, 7): (ml_dtypes.bfloat16, np.uint16),
    }.get((exponent_bits, mantissa_bits), (np.float16, np.uint16))
    return np.array(numbers, np.float32).astype(dtype).view(code).tolist()
""",
        "smallest case that fails",
    ),
    (
        "lab05.ex1",
        "does nothing",
        "def round_by_hand(numbers, exponent_bits, mantissa_bits):\n    return None",
        "`round_by_hand` returned None: return a list of 10 codes",
    ),
    (
        "lab05.ex1",
        "the course's own rounding",
        """
def round_by_hand(numbers, exponent_bits, mantissa_bits):
    from utils.chip.formats import Format

    bias = 2 ** (exponent_bits - 1) - 1
    return Format("mine", exponent_bits, mantissa_bits, bias).encode(numbers).tolist()
""",
        "belongs to the course: write this one yourself, it is lab 05, exercise 1",
    ),
    (
        "lab05.ex1",
        "frexp taken for the exponent of 1.xxx",
        _hand(("[1] - 1, 1 - bias", "[1], 1 - bias")),
        "so the exponent of 1.xxx is one less",
    ),
    (
        "lab05.ex1",
        "two's complement",
        _hand(
            (
                "sign << (exponent_bits + mantissa_bits) | code",
                "-code % 2 ** (1 + exponent_bits + mantissa_bits) if sign else code",
            )
        ),
        "negative numbers came as two's complement",
    ),
    (
        "lab05.ex1",
        "the bias of FP32",
        _hand(("bias = 2 ** (exponent_bits - 1) - 1", "bias = 127")),
        "every number became infinity: the bias is 2**(exponent_bits - 1) - 1",
    ),
    (
        "lab05.ex1",
        "negative codes",
        _hand(("sign << (exponent_bits + mantissa_bits) | code", "-code if sign else code")),
        "A negative number has the sign bit set, and no negative code",
    ),
    (
        "lab05.ex1",
        "subnormals one exponent too low",
        _hand(("1 - bias)\n", "-bias)\n")),
        "No exponent is below that of the smallest normal value",
    ),
    # ex2
    (
        "lab05.ex2",
        "to nearest",
        "def round_stochastically(x, rng):\n"
        "    return x.astype(ml_dtypes.bfloat16).astype(np.float32)",
        "every draw of a value went to the nearer neighbour",
    ),
    (
        "lab05.ex2",
        "truncation",
        _random((" + noise", "")),
        "every draw was cut off, towards zero",
    ),
    (
        "lab05.ex2",
        "a coin",
        _chosen("(between > 0) & (rng.random(x.shape) < 0.5)"),
        "up and down are equally likely, however near",
    ),
    (
        "lab05.ex2",
        "neighbours exchanged",
        _chosen("(between > 0) & (rng.random(x.shape) >= between)"),
        "the nearer neighbour is the less likely one",
    ),
    (
        "lab05.ex2",
        "noise half as wide",
        _random(("rng.integers(0, 2**16", "rng.integers(0, 2**15")),
        "the noise is half a step wide, from zero on",
    ),
    (
        "lab05.ex2",
        "noise twice as wide",
        _random(("rng.integers(0, 2**16", "rng.integers(0, 2**17")),
        "noise of more than one step moves numbers past their neighbours",
    ),
    (
        "lab05.ex2",
        "noise added twice",
        _random(
            ("x.view(np.uint32) + noise", "x.view(np.uint32) + noise + rng.permuted(noise)"),
        ),
        "noise of more than one step moves numbers past their neighbours",
    ),
    (
        "lab05.ex2",
        "noise around zero, then cut off",
        _random(("+ noise", "+ noise - np.uint32(2**15)")),
        "noise of more than one step moves numbers past their neighbours",
    ),
    (
        "lab05.ex2",
        "noise from zero on, then to nearest",
        _noise("rng.random(x.shape)", "np.round(x / step + noise)"),
        "noise of more than one step moves numbers past their neighbours",
    ),
    (
        "lab05.ex2",
        "noise of one size for all numbers",
        """
def round_stochastically(x, rng):
    noise = rng.uniform(-0.5, 0.5, x.shape) * 2.0**-7
    return (x + noise).astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
""",
        "noise of more than one step moves numbers past their neighbours",
    ),
    (
        "lab05.ex2",
        "below a power of two",
        """
def round_stochastically(x, rng):
    step = np.ldexp(1.0, np.frexp(x)[1] - 8)
    moved = x + rng.uniform(-0.5, 0.5, x.shape) * step
    return moved.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
""",
        "below a power of two the steps are half as wide",
    ),
    (
        "lab05.ex2",
        "half up in the mantissa",
        _random((" + noise", " + np.uint32(2**15)")),
        "nothing is random here",
    ),
    (
        "lab05.ex2",
        "a small lean",
        _chosen("(between > 0) & (rng.random(x.shape) < between + 0.01)"),
        "on average numbers move away from zero",
    ),
    (
        "lab05.ex2",
        "normal noise",
        _chosen("(between > 0) & (between > 0.5 + 0.2 * rng.standard_normal(x.shape))"),
        "the shares scatter more, or lie elsewhere",
    ),
    (
        "lab05.ex2",
        "one draw for all numbers",
        _random(("x.shape, dtype", "1, dtype")),
        "went the same way: each number needs noise of its own",
    ),
    (
        "lab05.ex2",
        "one draw for each row",
        _random(
            ("rng.integers(0, 2**16, x.shape,", "rng.integers(0, 2**16, (*x.shape[:-1], ONE),"),
            ("    noise = ", "    ONE = x.shape[-1] if x.ndim == 1 else 1\n    noise = "),
        ),
        "the shares scatter more, or lie elsewhere",
    ),
    (
        "lab05.ex2",
        "a generator of its own",
        _random(("    noise = rng", "    rng = np.random.default_rng(0)\n    noise = rng")),
        "generators with different seeds gave one result",
    ),
    (
        "lab05.ex2",
        "the global generator",
        _random(("noise = rng.integers(0, 2**16,", "noise = np.random.randint(0, 2**16,")),
        "two generators with the same seed gave two results",
    ),
    (
        "lab05.ex2",
        "works on x itself",
        _random(
            ("    bits = x.view(np.uint32) + noise\n", "    bits = x.view(np.uint32)\n"),
            (
                "    return (bits & np.uint32(0xFFFF0000)).view(np.float32)",
                "    bits += noise\n    bits &= np.uint32(0xFFFF0000)\n    return x",
            ),
        ),
        "x was changed: work on a copy",
    ),
    (
        "lab05.ex2",
        "nothing cut off",
        _random(("bits & np.uint32(0xFFFF0000)", "bits & np.uint32(0xFFFFFFFF)")),
        "that is no value of BF16",
    ),
    (
        "lab05.ex2",
        "x as it is",
        "def round_stochastically(x, rng):\n    return x.copy()",
        "that is no value of BF16",
    ),
    (
        "lab05.ex2",
        "another dtype",
        _random((".view(np.float32)", ".view(np.float32).astype(ml_dtypes.bfloat16)")),
        "the result is bfloat16: return float32",
    ),
    (
        "lab05.ex2",
        "does nothing",
        "def round_stochastically(x, rng):\n    return None",
        "`round_stochastically` returned None: return an array",
    ),
    (
        "lab05.ex2",
        "one draw for each column",
        _random(("x.shape, dtype", "x.shape[-1], dtype")),
        "the shares scatter more, or lie elsewhere",
    ),
    (
        "lab05.ex2",
        "noise far too small",
        _random(("rng.integers(0, 2**16", "rng.integers(0, 2**8")),
        "or the noise is far smaller than a step",
    ),
    (
        "lab05.ex2",
        "the distance not in steps",
        _chosen("rng.random(x.shape) < abs(x - low)"),
        "it has to be counted in steps",
    ),
    (
        "lab05.ex2",
        "a negative share for negative numbers",
        """
def round_stochastically(x, rng):
    step = np.ldexp(1.0, np.frexp(x)[1] - 8)
    whole = np.trunc(x / step)
    up = rng.random(x.shape) < x / step - whole
    return ((whole + np.sign(x) * up) * step).astype(np.float32)
""",
        "only negative numbers go wrong",
    ),
    (
        "lab05.ex2",
        "the lower bits kept",
        _random(("0xFFFF0000", "0x0000FFFF")),
        "that is far from x",
    ),
    (
        "lab05.ex2",
        "an end that is included",
        _random(("dtype=np.uint32)", "dtype=np.uint32, endpoint=True)")),
        "noise must never be enough for a whole step",
    ),
    # ex3
    (
        "lab05.ex3",
        "partial sums in BF16",
        _product(
            (", np.float32)", ", ml_dtypes.bfloat16)"),
            (ADD, ADD.replace("total += ", "total = (total + ") + ").astype(total.dtype)"),
            ("return total", "return total.astype(np.float32)"),
        ),
        "every number of the result is a BF16 value",
    ),
    (
        "lab05.ex3",
        "partial sums in FP16",
        _product(
            (", np.float32)", ", np.float16)"),
            (ADD, ADD.replace("total += ", "total = (total + ") + ").astype(total.dtype)"),
            ("return total", "return total.astype(np.float32)"),
        ),
        "close, but more is lost than FP32 loses",
    ),
    (
        "lab05.ex3",
        "tiles rounded to BF16",
        _product((ADD, ADD + ".astype(ml_dtypes.bfloat16).astype(np.float32)")),
        "close, but more is lost than FP32 loses",
    ),
    (
        "lab05.ex3",
        "the sum rounded to BF16",
        _product(("return total", "return total.astype(ml_dtypes.bfloat16).astype(np.float32)")),
        "every number of the result is a BF16 value",
    ),
    (
        "lab05.ex3",
        "np.zeros in float64",
        _product((", np.float32)", ")")),
        "the result is float64: return the sum in float32",
    ),
    (
        "lab05.ex3",
        "sums in float64",
        _product((", np.float32)", ")"), ("return total", "return total.astype(np.float32)")),
        "partial sums were added in float64: PSUM adds in FP32",
    ),
    (
        "lab05.ex3",
        "without the engine",
        """
def tiled_product(a, b, engine):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
""",
        "the engine multiplied nothing",
    ),
    (
        "lab05.ex3",
        "operands in FP32",
        _product((ADD, ADD.replace("stop]", "stop].astype(np.float32)"))),
        "a is float32: the engine multiplies bfloat16 only here",
    ),
    (
        "lab05.ex3",
        "all at once",
        """
def tiled_product(a, b, engine):
    return engine.multiply(a, b)
""",
        "the engine takes tiles of k up to",
    ),
    (
        "lab05.ex3",
        "the short last tile left out",
        _product((LOOP, LOOP.replace("a.shape[1],", "a.shape[1] - engine.depth + 1,"))),
        "the last tile may be shorter",
    ),
    (
        "lab05.ex3",
        "only the last tile",
        _product((ADD, ADD.replace("+=", "="))),
        "only the last tile is in the result",
    ),
    (
        "lab05.ex3",
        "returns in the loop",
        _product(("    return total", "        return total")),
        "only the first tile is in the result",
    ),
    (
        "lab05.ex3",
        "overlapping tiles",
        _product(("range(0, a.shape[1], engine.depth)", "range(0, a.shape[1], engine.depth // 2)")),
        "the engine made products that the result does not need",
    ),
    (
        "lab05.ex3",
        "transposed",
        _product(("return total", "return total.T")),
        "the result has another shape",
    ),
    (
        "lab05.ex3",
        "a list of tiles",
        _product(
            ("np.zeros((a.shape[0], b.shape[1]), np.float32)", "[]"),
            (ADD, ADD.replace("+= ", "+= [") + "]"),
        ),
        "`tiled_product` returned a list of",
    ),
    (
        "lab05.ex3",
        "the course's own sums",
        """
def tiled_product(a, b, engine):
    from utils.chip.accumulate import dot

    return dot(a.astype(np.float32), b.astype(np.float32), partial="fp32")
""",
        "belongs to the course: write this one yourself, it is lab 05, exercise 3",
    ),
    (
        "lab05.ex3",
        "the last tile filled up with zeros",
        _product(
            (
                "    total = np",
                "    missing = -a.shape[1] % engine.depth\n"
                "    a = np.pad(a, ((0, 0), (0, missing)))\n"
                "    b = np.pad(b, ((0, missing), (0, 0)))\n"
                "    total = np",
            )
        ),
        "the engine multiplied zeros that fill up the last tile",
    ),
    (
        "lab05.ex3",
        "the mean of the tiles",
        _product(("return total", "return total / np.float32(-(-a.shape[1] // engine.depth))")),
        "tiles are added, once each, not averaged",
    ),
    (
        "lab05.ex3",
        "a sum that begins at one",
        _product(("np.zeros(", "np.ones(")),
        "every number is off by 1: the sum begins at zero",
    ),
    (
        "lab05.ex3",
        "a total in the dtype of a",
        _product(
            (", np.float32)", ", a.dtype)"),
            (ADD, ADD.replace("total += ", "total = (total + ") + ").astype(total.dtype)"),
        ),
        "the result is bfloat16: return the sum in float32, as PSUM holds it.",
    ),
    (
        "lab05.ex3",
        "an engine of its own",
        _product(("    total = np", "    engine = TensorEngine()\n    total = np")),
        "the engine multiplied nothing",
    ),
    # ex4
    (
        "lab05.ex4",
        "the stalled update",
        """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        w -= lr * gradient
""",
        "still stalled: an update of less than half a step of BF16 is rounded away",
    ),
    (
        "lab05.ex4",
        "sums in FP32, nothing kept",
        """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        w.copy_(w.float() - lr * gradient.float())
""",
        "still stalled",
    ),
    (
        "lab05.ex4",
        "masters made anew in each step",
        _master(
            (
                'state.setdefault("masters", [w.float() for w in weights])',
                "[w.float() for w in weights]",
            )
        ),
        "still stalled",
    ),
    (
        "lab05.ex4",
        "masters in BF16",
        _master(("[w.float() for", "[w.clone() for"), ("gradient.float()", "gradient")),
        "still stalled",
    ),
    (
        "lab05.ex4",
        "masters never copied",
        _master(("        w.copy_(master)\n", "")),
        "must be written into `weights`",
    ),
    (
        "lab05.ex4",
        "FP32 weights in the forward pass",
        """
def update(weights, gradients, state, lr):
    for k, (w, gradient) in enumerate(zip(weights, gradients, strict=True)):
        weights[k] = w.float() - lr * gradient.float()
""",
        "the forward pass saw weights of float32",
    ),
    (
        "lab05.ex4",
        "the masters in place of the weights",
        _master(
            (PAIRS, NUMBERED),
            ("w.copy_(master)", "weights[k] = master"),
        ),
        "the forward pass saw weights of float32",
    ),
    (
        "lab05.ex4",
        "the wrong direction",
        _master(("master -=", "master +=")),
        "the loss has grown: an update goes against the gradient",
    ),
    (
        "lab05.ex4",
        "a larger learning rate",
        """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        w -= 10 * lr * gradient
""",
        "another learning rate is another training",
    ),
    (
        "lab05.ex4",
        "the learning rate twice",
        _master(("lr * gradient", "lr * lr * gradient")),
        "far smaller than lr times the gradient",
    ),
    (
        "lab05.ex4",
        "momentum added",
        _master(
            (
                "        master -= lr * gradient.float()\n",
                "        gradient = gradient.float() + 0.9 * state.get(id(master), 0)\n"
                "        state[id(master)] = gradient\n"
                "        master -= lr * gradient\n",
            )
        ),
        "another learning rate is another training",
    ),
    (
        "lab05.ex4",
        "noise half as wide",
        changed(BY_CHANCE, ("* 2**16)", "* 2**15)")),
        "it learns, but less than the same training in FP32",
    ),
    (
        "lab05.ex4",
        "only the first weight",
        _master(("        w.copy_(master)", "        w.copy_(master)\n        break")),
        "it learns, but less than the same training in FP32",
    ),
    (
        "lab05.ex4",
        "moved to the CPU",
        _master(
            (PAIRS, NUMBERED),
            ("w.copy_(master)", "weights[k] = master.bfloat16().cpu()"),
        ),
        "Expected XLA tensor",
    ),
    (
        "lab05.ex4",
        "does nothing",
        "def update(weights, gradients, state, lr):\n    return None",
        "no weight moved at all",
    ),
    (
        "lab05.ex4",
        "masters outside of state",
        _master(
            ("def update", "KEPT = {}\n\n\ndef update"), ("state.setdefault", "KEPT.setdefault")
        ),
        "And what lasts belongs in `state`",
    ),
    (
        "lab05.ex4",
        "new weights returned",
        _master(
            ("        w.copy_(master)\n", "    return [master.bfloat16() for master in masters]\n")
        ),
        "must be written into `weights`",
    ),
    (
        "lab05.ex4",
        "another dict in place of state",
        _master(("    masters = ", "    state = dict(state)\n    masters = ")),
        "still stalled",
    ),
    (
        "lab05.ex4",
        "a fixed step against the sign",
        """
def update(weights, gradients, state, lr):
    for w, gradient in zip(weights, gradients, strict=True):
        w -= lr * gradient.sign()
""",
        "One update is lr times the gradient",
    ),
    (
        "lab05.ex4",
        "the course's own random rounding",
        """
def update(weights, gradients, state, lr):
    from utils.training.precision import stochastic_bf16

    for w, gradient in zip(weights, gradients, strict=True):
        new = w.float() - lr * gradient.float()
        w.copy_(stochastic_bf16(new, torch.rand_like(new)))
""",
        "belongs to the course: write this one yourself, it is lab 05, exercise 4",
    ),
    # ex5
    (
        "lab05.ex5",
        "448 for 240",
        _scales(("240 / largest", "448 / largest")),
        "448, the maximum of the OCP format, was taken for 240",
    ),
    (
        "lab05.ex5",
        "448 over the largest",
        _scales((SCALE, "448 / largest")),
        "448 is the maximum of the OCP format",
    ),
    (
        "lab05.ex5",
        "exponent rounded to nearest",
        _scales(("math.floor(math.log2(240 / largest))", "round(math.log2(240 / largest))")),
        "rounded down, not to the nearest",
    ),
    (
        "lab05.ex5",
        "exponent rounded up",
        _scales(("math.floor(", "math.ceil(")),
        "or the exponent was rounded up",
    ),
    (
        "lab05.ex5",
        "only the exponent of the largest",
        _scales((SCALE, "2.0 ** (7 - math.floor(math.log2(largest)))")),
        "significand counts, too",
    ),
    (
        "lab05.ex5",
        "a power of two too small",
        _scales((SCALE, f"{SCALE} / 2")),
        "a larger scale still saturates nothing",
    ),
    (
        "lab05.ex5",
        "inverted",
        _scales((SCALE, f"1 / {SCALE}")),
        "these are the reciprocals of good scales",
    ),
    (
        "lab05.ex5",
        "the largest value, not magnitude",
        _scales(("float(abs(x).max())", "float(x.max())")),
        "take the largest magnitude",
    ),
    (
        "lab05.ex5",
        "no scaling",
        "def choose_scales(tensors):\n    return [1.0] * len(tensors)",
        "most values are stored as subnormal numbers, or as zero",
    ),
    (
        "lab05.ex5",
        "one scale for all",
        """
def choose_scales(tensors):
    largest = max(float(abs(x).max()) for x in tensors)
    return [2.0 ** math.floor(math.log2(240 / largest))] * len(tensors)
""",
        "most values are stored as subnormal numbers, or as zero",
    ),
    (
        "lab05.ex5",
        "largest to one",
        _scales((SCALE, "2.0 ** math.floor(math.log2(1 / largest))")),
        "most values are stored as subnormal numbers, or as zero",
    ),
    (
        "lab05.ex5",
        "largest to one, exactly",
        _scales((SCALE, "1 / largest")),
        "the scale has to bring each tensor's largest magnitude close to 240",
    ),
    (
        "lab05.ex5",
        "the mean magnitude",
        _scales(("abs(x).max()", "abs(x).mean()")),
        "the largest magnitude times the scale must be at most 240",
    ),
    (
        "lab05.ex5",
        "the 99th percentile",
        _scales(("abs(x).max()", "np.percentile(abs(x), 99)")),
        "nothing saturates: ",
    ),
    (
        "lab05.ex5",
        "a tensor of zeros forgotten",
        _scales((f"{SCALE} if largest else 1.0", "240 / np.float32(largest)")),
        "inf is among the scales",
    ),
    (
        "lab05.ex5",
        "almost zero",
        "def choose_scales(tensors):\n    return [1e-20] * len(tensors)",
        "most values are stored as subnormal numbers, or as zero",
    ),
    (
        "lab05.ex5",
        "does nothing",
        "def choose_scales(tensors):\n    return None",
        "`choose_scales` returned None: return a list of 2 floats, one per tensor",
    ),
    (
        "lab05.ex5",
        "the exponent in place of the scale",
        _scales((SCALE, "float(math.floor(math.log2(240 / largest)))")),
        "these are the exponents of good scales",
    ),
    (
        "lab05.ex5",
        "the maximum of e5m2",
        _scales(
            ("240 / largest", "57344 / largest"),
            ("2.0 ** math.floor(math.log2(57344 / largest))", "57344 / largest"),
        ),
        "57344 is the maximum of e5m2",
    ),
    (
        "lab05.ex5",
        "a scale of zero for zeros",
        _scales(("else 1.0", "else 0.0")),
        "0 is among the scales: a scale is above 0",
    ),
    (
        "lab05.ex5",
        "scaled tensors",
        "def choose_scales(tensors):\n    return [x * 64 for x in tensors]",
        "a ndarray is among the scales",
    ),
    (
        "lab05.ex5",
        "zeros left out",
        _scales(
            (f"{SCALE} if largest else 1.0)", f"{SCALE})"),
            ("        scales.append", "        if largest:\n            scales.append"),
        ),
        "return a list of 4 floats, one per tensor",
    ),
    (
        "lab05.ex5",
        "the course's own scale",
        """
def choose_scales(tensors):
    from utils.training.precision.rounding import fp8_scale

    return [float(1 / fp8_scale(torch.tensor(abs(x).max()), "e4m3")) for x in tensors]
""",
        "belongs to the course: write this one yourself, it is lab 05, exercise 5",
    ),
    # ex6
    (
        "lab05.ex6",
        "exponent rounded up",
        _blocks(
            (
                EXPONENTS,
                "exponents = np.ceil(np.log2(np.maximum(sizes, 2.0**-126))).astype(int) - emax",
            )
        ),
        "the exponent is rounded down (floor), not up",
    ),
    (
        "lab05.ex6",
        "exponent to nearest",
        _blocks(
            (
                EXPONENTS,
                "exponents = np.round(np.log2(np.maximum(sizes, 2.0**-126))).astype(int) - emax",
            )
        ),
        "the exponent is rounded down (floor), not to the nearest",
    ),
    (
        "lab05.ex6",
        "so that nothing is cut off",
        _blocks(
            (
                EXPONENTS,
                "exponents = np.ceil(np.log2(np.maximum(sizes, 2.0**-126) / largest)).astype(int)",
            )
        ),
        "the rule is floor all the same",
    ),
    (
        "lab05.ex6",
        "without emax",
        _blocks((" - 1 - emax", " - 1")),
        "up to the largest exponent of the element",
    ),
    (
        "lab05.ex6",
        "emax one too large",
        _blocks(("math.floor(math.log2(largest))", "math.ceil(math.log2(largest))")),
        "is the exponent of the element's largest value",
    ),
    (
        "lab05.ex6",
        "reciprocal scales",
        _blocks(("(exponents + 127)", "(127 - exponents).clip(0)")),
        "these are the codes of the reciprocals",
    ),
    (
        "lab05.ex6",
        "no bias",
        _blocks(("(exponents + 127).astype(np.uint8)", "exponents")),
        "a code of E8M0 is the exponent plus 127",
    ),
    (
        "lab05.ex6",
        "multiplied by the scale",
        _blocks(("np.ldexp(blocks, -exponents", "np.ldexp(blocks, exponents")),
        "divide by the scale, do not multiply",
    ),
    (
        "lab05.ex6",
        "one scale for all",
        _blocks(
            (
                "    sizes = abs(blocks).max(axis=2)\n",
                "    sizes = abs(blocks).max(axis=2)\n    sizes[:] = sizes.max()\n",
            )
        ),
        "each block of 32 has its own",
    ),
    (
        "lab05.ex6",
        "one scale for each row",
        _blocks(
            ("abs(blocks).max(axis=2)", "abs(blocks).max(axis=2) * 0 + abs(x).max(axis=1)[:, None]")
        ),
        "each block of 32 has its own",
    ),
    (
        "lab05.ex6",
        "blocks along columns",
        _blocks(
            (
                "    dtype, largest",
                "    square = x.shape[0] == 32\n"
                "    x = x.T.copy() if square else x\n"
                "    dtype, largest",
            ),
            (
                "elements.reshape(x.shape)",
                "elements.reshape(x.shape).T if square else elements.reshape(x.shape)",
            ),
        ),
        "these are the scales of columns",
    ),
    (
        "lab05.ex6",
        "the largest value, not magnitude",
        _blocks(("abs(blocks).max(axis=2)", "blocks.max(axis=2).clip(0)")),
        "the extreme value may be negative",
    ),
    (
        "lab05.ex6",
        "not limited",
        _blocks((".clip(-largest, largest)", "")),
        "a value too large for e4m3fn becomes nan",
    ),
    (
        "lab05.ex6",
        "limited to 240",
        _blocks(
            (
                "scaled.clip(-largest, largest)",
                "scaled.clip(-largest * 240 / 448, largest * 240 / 448)",
            )
        ),
        "e4m3fn goes on to 448",
    ),
    (
        "lab05.ex6",
        "truncated elements",
        _blocks(
            (
                CAST,
                "\n    lowest = 2.0**-6 if emax == 8 else 1.0\n"
                "    whole = 2.0 ** np.floor(np.log2(abs(elements).clip(lowest)))\n"
                "    step = whole * (0.125 if emax == 8 else 0.5)\n"
                "    elements = (np.trunc(elements / step) * step).astype(np.float32)",
            )
        ),
        "the bits that do not fit are cut off: round to the nearest element",
    ),
    (
        "lab05.ex6",
        "no subnormal elements",
        _blocks(
            (
                CAST,
                f"{CAST}\n    elements[abs(elements) < (2.0**-6 if emax == 8 else 1)] = 0",
            )
        ),
        "became zero: the subnormal ones are there to be used",
    ),
    (
        "lab05.ex6",
        "a logarithm in float32",
        _blocks(
            (
                EXPONENTS,
                "logs = np.log2(np.maximum(sizes, np.float32(2.0**-126)))\n"
                "    exponents = np.floor(logs).astype(int) - emax",
            )
        ),
        "a logarithm in float32 rounds up there",
    ),
    (
        "lab05.ex6",
        "dequantised",
        _blocks(
            (
                "elements.reshape(x.shape)",
                "np.ldexp(elements, exponents[:, :, None]).reshape(x.shape)",
            )
        ),
        "an element is the value over the scale",
    ),
    (
        "lab05.ex6",
        "not rounded",
        _blocks((CAST, "")),
        "the values are scaled, and not rounded to elements",
    ),
    (
        "lab05.ex6",
        "zeros with a scale of one",
        _blocks(("exponents, -127)", "exponents, 0)")),
        "a block of zeros has the code 0",
    ),
    (
        "lab05.ex6",
        "codes that wrap around",
        _blocks((".clip(-127, 127)", "")),
        "the smallest exponent of E8M0 is -127",
    ),
    (
        "lab05.ex6",
        "does nothing",
        "def mx_quantise(x, element):\n    return None",
        "`mx_quantise` returned None: return two arrays",
    ),
    (
        "lab05.ex6",
        "the course's own blocks",
        """
def mx_quantise(x, element):
    from utils.chip.mx import quantise

    found = quantise(x, element)
    return found.scale_codes, found.elements
""",
        "belongs to the course: write this one yourself, it is lab 05, exercise 6",
    ),
    (
        "lab05.ex6",
        "codes and elements exchanged",
        _blocks(
            (
                "return (exponents + 127).astype(np.uint8), elements.reshape(x.shape)",
                "return elements.reshape(x.shape), exponents + 127",
            )
        ),
        "codes and elements are exchanged",
    ),
    (
        "lab05.ex6",
        "a bias of 128",
        _blocks(("exponents + 127", "exponents + 128")),
        "every code is one too large",
    ),
    (
        "lab05.ex6",
        "the e4m3 with infinity",
        _blocks(
            (
                "    emax = ",
                "    if largest == 448:\n"
                "        dtype, largest = ml_dtypes.float8_e4m3, 240.0\n"
                "    emax = ",
            )
        ),
        "every code is one too large",
    ),
    (
        "lab05.ex6",
        "floor of the quotient",
        _blocks(
            (
                EXPONENTS,
                "exponents = np.floor(np.log2(np.maximum(sizes, 2.0**-126) / largest)).astype(int)",
            )
        ),
        "not of the quotient",
    ),
    (
        "lab05.ex6",
        "numbers that lie apart",
        _blocks(
            ("x.reshape(len(x), -1, 32)", "x.reshape(len(x), 32, -1).swapaxes(1, 2)"),
            ("elements.reshape(", "elements.swapaxes(1, 2).reshape("),
        ),
        "these are the scales of numbers that lie apart",
    ),
    (
        "lab05.ex6",
        "codes in int8",
        _blocks(("np.uint8", "np.int8")),
        "(an int8 ends at 127)",
    ),
    (
        "lab05.ex6",
        "a logarithm of zero",
        _blocks(
            (EXPONENTS, "exponents = np.floor(np.log2(sizes.astype(float))) - emax"),
            ("    exponents = np.where(sizes > 0, exponents, -127).clip(-127, 127)\n", ""),
            ("np.ldexp(blocks, -exponents[:, :, None])", "blocks / 2.0 ** exponents[:, :, None]"),
            ("(exponents + 127).astype(np.uint8)", "exponents + 127"),
        ),
        "log2(0) is none",
    ),
    (
        "lab05.ex6",
        "tensors",
        _blocks(("elements.reshape(x.shape)", "torch.tensor(elements.reshape(x.shape))")),
        "returned a ndarray and a tensor on cpu: return two arrays",
    ),
]
