"""What an audit of the real source tree says about the answers: it may only make them harder.

An audit reads the tree that it is given, not the packages installed beside it: what it finds
overrules an answer, what it does not find proves nothing.
"""

from collections import Counter
from dataclasses import dataclass

from utils.audit import Report
from utils.cost.checks import check_kind
from utils.cost.decision.judgements import Values
from utils.cost.decision.questions import KERNELS, SHAPES, Answers

REPORT = "the report of utils.audit.audit(path), or None"
"""What is allowed as an audit."""
OWN = ("cuda-extension", "triton")
PACKAGED = ("flash-attn", "xformers", "bitsandbytes", "apex", "deepspeed", "cuda-package")
DYNAMIC = ("data-dependent-shape", "boolean-mask", "growing-cat")
"""Rules of the audit: kernels of one's own, kernels of packages, shapes that depend on data."""


@dataclass(frozen=True)
class Contradiction:
    """An answer that the audit does not bear out.

    used: what the rule goes by: the worse of the two.
    """

    field: str
    answered: str
    used: str
    text: str


@dataclass(frozen=True)
class Seen:
    """What an audit found, as far as the decision reads it.

    kernels, shapes: at least this, in the words of the questionnaire. errors: findings that stop a
    port until they are changed. unread: files that could not be read.
    """

    kernels: str = KERNELS[0]
    shapes: str = SHAPES[0]
    errors: int = 0
    unread: int = 0
    files: int = 0
    counts: tuple[tuple[str, int], ...] = ()

    def named(self, rules: tuple[str, ...]) -> str:
        """Such as "2 of cuda-extension, 1 of triton"."""
        return ", ".join(f"{number} of {rule}" for rule, number in self.counts if rule in rules)


NOTHING = Seen()


def summarise(report: Report | None, values: Values) -> Seen:
    """An audit in the words of the questionnaire, without notes, which the code handles itself.

    Raises:
        TypeError: for anything but a report of `utils.audit`.
    """
    if report is None:
        return NOTHING
    check_kind("audit", report, Report, REPORT)
    counts = Counter(item.rule for item in report.at_least("warning"))
    own = sum(counts[rule] for rule in OWN)
    packaged = sum(counts[rule] for rule in PACKAGED)
    dynamic = sum(counts[rule] for rule in DYNAMIC)
    kernels = KERNELS[2 if own >= values["own_kernels"] else 1 if own or packaged else 0]
    shapes = SHAPES[2 if dynamic >= values["dynamic_findings"] else 1 if dynamic else 0]
    return Seen(
        kernels,
        shapes,
        report.counts["error"],
        len(report.broken),
        report.files,
        tuple(sorted(counts.items())),
    )


def _worse(scale: tuple[str, ...], a: str, b: str) -> str:
    return max(a, b, key=scale.index)


def correct_answers(answers: Answers, result: Seen) -> Answers:
    """The answers that the rule goes by."""
    kernels = _worse(KERNELS, answers.kernels, result.kernels)
    shapes = _worse(SHAPES, answers.shapes, result.shapes)
    if (kernels, shapes) == (answers.kernels, answers.shapes):
        return answers
    return answers.changed(kernels=kernels, shapes=shapes)


def contradictions(answers: Answers, result: Seen) -> tuple[Contradiction, ...]:
    """Where answers and audit disagree: the audit overrules what is too good, doubts the rest."""
    if result is NOTHING:
        return ()
    listed = []
    for field, scale, rules, what in (
        ("kernels", KERNELS, OWN + PACKAGED, "CUDA kernels"),
        ("shapes", SHAPES, DYNAMIC, "shapes that depend on data"),
    ):
        sentence, there = getattr(answers, field), getattr(result, field)
        if scale.index(there) > scale.index(sentence):
            text = (
                f"the answer on {field} is {sentence!r}, the audit finds {what}"
                f" ({result.named(rules)}): the rule goes by {there!r}"
            )
            listed.append(Contradiction(field, sentence, there, text))
        elif sentence == scale[-1] and there == scale[0]:
            text = (
                f"the answer on {field} is {sentence!r}, the audit finds none in {result.files}"
                " files: the answer stands; is this the right tree, or do packages bring them?"
            )
            listed.append(Contradiction(field, sentence, sentence, text))
    if result.unread:
        text = f"{result.unread} files could not be read: what is in them is not known"
        listed.append(Contradiction("audit", "", "", text))
    return tuple(listed)
