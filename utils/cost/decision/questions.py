"""The questionnaire: what has to be known of a workload before anyone can choose machines for it.

`QUESTIONS` is the one table; `Answers` holds one answer to each of its rows and checks itself.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from utils.facts import figure


class AnswerError(ValueError):
    """An answer that is none: which field, what was given and what is allowed."""


ANY, ELSEWHERE = "any", "elsewhere"
OFFERED = ("trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge")
"""Instances whose Capacity Block regions are known."""


@cache
def offers() -> Mapping[str, frozenset[str]]:
    """Region -> the generations of Trainium of which Capacity Blocks are listed there.

    >>> sorted(offers()["us-east-2"])
    ['trn1', 'trn2']
    """
    found: dict[str, set[str]] = {}
    for name in OFFERED:
        for region in re.findall(
            r"[a-z]{2}-[a-z]+-\d", figure(f"{name}.price.capacity_block").note
        ):
            found.setdefault(region, set()).add(name.partition(".")[0])
    return MappingProxyType({region: frozenset(found[region]) for region in sorted(found)})


@dataclass(frozen=True)
class Question:
    """One row of the questionnaire.

    topic: rows of one topic are asked as one question. allowed: the answers, or () for a number
    from `low` to `high` in `unit`. why: why it matters. sources: keys of facts, ids of claims.
    """

    field: str
    topic: str
    asks: str
    why: str
    sources: tuple[str, ...]
    allowed: tuple[str, ...] = ()
    low: float = 0
    high: float = math.inf
    unit: str = ""
    whole: bool = False

    def says_allowed(self) -> str:
        """What is allowed, in words."""
        if self.allowed:
            return ", ".join(map(repr, self.allowed))
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:,.10g} {self.unit}"

    def check(self, value: object) -> None:
        """Raises AnswerError with the field, the value and what is allowed."""
        if self.allowed:
            good = isinstance(value, str) and value in self.allowed
        else:
            good = isinstance(value, int if self.whole else (int, float))
            good = good and not isinstance(value, bool) and math.isfinite(value)
            good = good and self.low <= value <= self.high
        if not good:
            raise AnswerError(
                f"{self.field}: {value!r} is no answer; allowed: {self.says_allowed()}"
            )


TRAINING = ("pre-training", "fine-tuning")
INFERENCE = ("batch inference", "online inference")
KERNELS = ("none", "known replacements", "central")
SHAPES = ("static", "bucketable", "data-dependent")
"""Kernels and shapes stand in the order of the work they make."""

_ROWS = (
    Question(
        "task",
        "task",
        "What is to run?",
        "each task has a software path of its own, with its own status",
        ("xla-training-ended", "vllm-neuron-status", "torchtitan-models"),
        (*TRAINING, *INFERENCE),
    ),
    Question(
        "architecture",
        "architecture",
        "What kind of model is it?",
        "recipes exist for transformers; what is new comes later",
        ("torchtitan-models", "vllm-neuron-status", "B-047"),
        ("dense transformer", "mixture of experts", "diffusion or CNN", "other"),
    ),
    Question(
        "framework",
        "framework",
        "What is the code written in?",
        "TensorFlow has no path, PyTorch/XLA has none for training any more, the others are betas",
        ("torchneuron-status", "xla-training-ended", "tensorflow-ended", "jax-neuron-status"),
        (
            "PyTorch eager",
            "torch.compile",
            "PyTorch/XLA",
            "JAX",
            "vLLM",
            "TensorFlow",
            "other",
        ),
    ),
    Question(
        "kernels",
        "kernels",
        "Which CUDA kernels of its own does it need, or of packages?",
        "CUDA kernels do not run on Trainium: each is replaced, or written anew in NKI",
        ("A-130", "B-045", "B-050"),
        KERNELS,
    ),
    Question(
        "shapes",
        "shapes",
        "Are the shapes of its tensors known before it runs?",
        "a graph is compiled for each set of shapes",
        ("B-046", "torchneuron-compile"),
        SHAPES,
    ),
    Question(
        "runs_per_year",
        "volume",
        "How often does it run in a year (a service: its days)?",
        "a port is paid once and used in every run",
        ("B-062", "B-063", "B-064"),
        high=1e6,
        unit="runs per year",
    ),
    Question(
        "spend_per_year",
        "volume",
        "What do its accelerators cost in a year, in one currency throughout?",
        "a share of a small sum pays for no engineer",
        ("A-133", "B-062"),
        high=1e12,
        unit="money per year",
    ),
    Question(
        "deadline_weeks",
        "deadline",
        "In how many weeks must it run in production?",
        "port and pilot take weeks, and nobody has data on how many",
        ("B-048", "D-037"),
        low=0.1,
        high=520,
        unit="weeks",
    ),
    Question(
        "engineers",
        "team",
        "How many engineers can work on a port?",
        "somebody has to port, and to keep up with releases",
        ("B-050", "B-059"),
        high=1000,
        unit="engineers",
        whole=True,
    ),
    Question(
        "experience",
        "team",
        "Which accelerators beside GPUs has the team ported to?",
        "the best known success had a large team, with the vendor's engineers beside it",
        ("B-059", "D-022"),
        ("none", "another accelerator", "Trainium"),
    ),
    Question(
        "region",
        "region",
        "Where must data and machines stay?",
        "Capacity Blocks of Trainium are listed in few regions",
        ("B-056", "B-067", "trn2.48xlarge.price.capacity_block"),
        (ANY, *offers(), ELSEWHERE),
    ),
    Question(
        "capacity",
        "capacity",
        "Which machines that run the software can you have in writing before the deadline?",
        "a price without a machine is no offer, and a machine without software is none either",
        ("D-027", "B-057", "A-149", "torchneuron-status"),
        ("not asked yet", "both", "Trainium only", "GPU only", "none to be had"),
    ),
    Question(
        "gate",
        "quality gate",
        "What tells whether results on another machine are as good?",
        "results will not be equal bit by bit, so something has to say what is good enough",
        ("D-032", "B-069"),
        ("automatic", "by hand", "none"),
    ),
    Question(
        "managed",
        "managed API",
        "Would a model behind a managed API do?",
        "then there are no machines to choose",
        ("bedrock-customisation", "A-120"),
        ("not enough", "not tried", "enough"),
    ),
)

QUESTIONS: Mapping[str, Question] = MappingProxyType({row.field: row for row in _ROWS})
UNSURE = {"capacity": "not asked yet", "managed": "not tried", "gate": "by hand"}
"""Answers that leave something to find out."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """One answer to each row of `QUESTIONS`.

    Raises:
        AnswerError: for an answer that is not allowed, or two that contradict each other.
    """

    task: str
    architecture: str
    framework: str
    kernels: str
    shapes: str
    runs_per_year: float
    spend_per_year: float
    deadline_weeks: float
    engineers: int
    experience: str
    region: str
    capacity: str
    gate: str
    managed: str

    def __post_init__(self) -> None:
        for name, row in QUESTIONS.items():
            row.check(getattr(self, name))
        if self.framework == "vLLM" and self.training:
            raise AnswerError(
                f"framework: 'vLLM' serves models and does not train them; allowed for the task"
                f" {self.task!r}: any other framework, or another task: {', '.join(INFERENCE)}"
            )

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "Answers":
        """Answers from a file or a form. Raises AnswerError for names that lack or are unknown."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            raise AnswerError(f"{unknown[0]}: no such question; allowed: {', '.join(known)}")
        if missing := [name for name in known if name not in given]:
            raise AnswerError(
                f"{missing[0]}: no answer; allowed: {QUESTIONS[missing[0]].says_allowed()}"
            )
        return cls(**given)

    @property
    def training(self) -> bool:
        """Whether it trains a model; otherwise it runs one."""
        return self.task in TRAINING

    @property
    def generations(self) -> frozenset[str]:
        """Generations of Trainium listed in the region, as Capacity Blocks."""
        if self.region == ANY:
            return frozenset().union(*offers().values())
        return offers().get(self.region, frozenset())

    def changed(self, **given: Any) -> "Answers":
        """The same with other answers. Raises AnswerError."""
        if unknown := [name for name in given if name not in QUESTIONS]:
            raise AnswerError(f"{unknown[0]}: no such question; allowed: {', '.join(QUESTIONS)}")
        return replace(self, **given)

    def others(self) -> Iterator[tuple[str, str]]:
        """Every single change to another allowed word: field and value, without impossible ones."""
        for name, row in QUESTIONS.items():
            for value in row.allowed:
                if value != getattr(self, name):
                    try:
                        self.changed(**{name: value})
                    except AnswerError:
                        continue
                    yield name, value
