"""On which engine an instruction runs, and from which generation on it exists."""

from collections.abc import Callable

from utils.nki.simulator.documentation import ENGINES, listed, stated
from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use
from utils.nki.simulator.operands import PSUM, Rule
from utils.nki.simulator.tensor import Tensor

CHIPS = {2: "Trainium1 (gen2)", 3: "Trainium2 (gen3)", 4: "Trainium3 (gen4)"}


def asked(use: Use, *allowed: engine) -> engine:
    """The engine that the call names, or `unknown`; refused if the instruction has no such form."""
    named = use.args["engine"]
    if named is engine.unknown or named in allowed:
        return named
    names = ", ".join(f"nisa.engine.{each.name}" for each in allowed)
    raise use.refuse(
        f"engine is {named!r}; allowed: {names}.",
        "other engines have no such instruction.",
        f"pass engine=nisa.engine.{allowed[0].name}, or leave it out.",
    )


def _engines(default: engine, others: tuple[engine, ...]) -> str:
    names = listed(tuple(f"the {ENGINES[each]}" for each in others), "or")
    return f"{ENGINES[default]}, on request {names}."


def asked_or(default: engine, *others: engine) -> Callable[[Use], engine]:
    """The engine that the call names, else `default`."""

    @stated(_engines(default, others))
    def choose(use: Use) -> engine:
        named = asked(use, default, *others)
        return default if named is engine.unknown else named

    return choose


def gpsimd_without_psum(use: Use) -> None:
    """GpSimd has no path to PSUM."""
    if use.engine is not engine.gpsimd:
        return
    power = getattr(use.args.get("op"), "name", "") == "power"  # on no other engine
    for name in use.spec.operands:
        value = use.args[name]
        if isinstance(value, Tensor) and value.buffer is PSUM:
            raise use.refuse(
                f"{name} is in PSUM, and {'nl.power' if power else 'this'} runs on GpSimd, which "
                "reaches SBUF only.",
                "GpSimd has no read or write path to PSUM.",
                ("" if power else "use engine=nisa.engine.vector where the instruction has it, or ")
                + f"nisa.tensor_copy {name} to an SBUF tile first.",
            )


def needs_generation(least: int) -> Rule:
    """The instruction exists from this generation on."""

    @stated(f"Exists from {CHIPS[least]} on.")
    def rule(use: Use) -> None:
        here = use.target.generation
        if here < least:
            raise use.refuse(
                f"the target is {use.target.name}, {CHIPS[here]}; the instruction needs "
                f"{CHIPS[least]} or later.",
                "older NeuronCores do not decode it.",
                f"write it with instructions of {CHIPS[here].split()[0]}, or set "
                f"NEURON_PLATFORM_TARGET_OVERRIDE=trn{least - 1}.",
            )

    return rule
