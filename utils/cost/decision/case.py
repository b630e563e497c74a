"""What the rows of the decision rule look at, and what a row is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from utils.cost.decision.effort import price_of_trying, roughly, weeks_needed
from utils.cost.decision.findings import NOTHING, Seen
from utils.cost.decision.judgements import Values
from utils.cost.decision.questions import Answers
from utils.cost.decision.saving import Saving

TRAINIUM, GPU = "trainium", "gpu"
BOTH = frozenset({TRAINIUM, GPU})
NO_TRAINIUM, NO_GPU = frozenset({TRAINIUM}), frozenset({GPU})
STAGES = ("veto", "money", "preference")
TRANSFORMERS = ("dense transformer", "mixture of experts")
NO_PATH = ("TensorFlow", "other")
NATIVE = ("PyTorch eager", "torch.compile")


@dataclass(frozen=True)
class Case:
    """What the rows look at: answers as the audit leaves them, and the saving if one is known."""

    answers: Answers
    saving: Saving | None
    values: Values
    found: Seen = NOTHING

    @cached_property
    def weeks(self) -> float:
        """Weeks by the calendar of port and pilot."""
        return weeks_needed(self.answers, self.values, self.found)

    @cached_property
    def price(self) -> float:
        """Money that port and pilot cost in pay."""
        return price_of_trying(self.answers, self.values, self.found)

    @property
    def price_said(self) -> str:
        return roughly(self.price)

    @property
    def weeks_said(self) -> str:
        return roughly(self.weeks)

    @property
    def hoped(self) -> float:
        """The most that volume and the vendor's best figure let one hope to save in the time."""
        share = self.values["best_saving"] * self.values["payback_years"]
        return share * self.answers.spend_per_year

    @property
    def worth(self) -> bool:
        """Whether the saving is large enough to keep a second platform for."""
        return (
            self.saving is not None
            and self.saving.middle >= self.values["least_saving"]
            and self.saving.amount >= self.values["least_amount"]
        )

    @property
    def shown(self) -> str:
        """What is known of the saving, in words."""
        if self.saving is None:
            return "no cost comparison was given"
        return (
            f"{self.saving.middle:.0%} in the middle, and above zero in"
            f" {self.saving.probability:.0%} of the draws"
        )

    def cheaper(self, threshold: str) -> bool:
        """Whether Trainium is cheaper with the probability of that judgement."""
        return self.saving is not None and self.saving.probability >= self.values[threshold]

    def dearer(self, threshold: str) -> bool:
        """Whether the GPU is cheaper with the probability of that judgement."""
        return self.saving is not None and self.saving.probability <= 1 - self.values[threshold]

    @property
    def clearly_dearer(self) -> bool:
        """Whether money is clear against Trainium: by its chance, or by its size where it leans and
        a GPU can be had instead.
        """
        much = self.saving is not None and self.saving.middle <= -self.values["least_saving"]
        instead = self.answers.capacity != "Trainium only"
        return self.dearer("clear_probability") or (
            much and instead and self.dearer("leaning_probability")
        )

    @property
    def path(self) -> str:
        """The software that runs it from here on; PyTorch/XLA is ported to TorchNeuron."""
        return {"vLLM": "vLLM Neuron", "JAX": "JAX on Neuron"}.get(
            self.answers.framework, "TorchNeuron"
        )

    @property
    def only_older(self) -> bool:
        """Whether the region lists Trainium, but no generation on which `path` runs."""
        listed, framework = self.answers.generations, self.answers.framework
        return bool(listed) and "trn2" not in listed and framework not in (*NO_PATH, "JAX")

    @property
    def generations(self) -> frozenset[str]:
        """Generations of Trainium on which the code runs today, or its port will."""
        older = self.answers.framework == "JAX" or (
            self.answers.framework == "PyTorch/XLA" and not self.answers.training
        )
        return frozenset({"trn1", "trn2"} if older else {"trn2"})

    @property
    def recipe(self) -> bool:
        """Whether the vendor keeps recipes for this kind of work."""
        if self.answers.architecture not in TRANSFORMERS:
            return False
        trains = self.answers.task == "pre-training" and self.answers.framework in NATIVE
        return trains or self.answers.framework == "vLLM"


@dataclass(frozen=True)
class Row:
    """One rule. closes: what it rules out (a veto). votes: for Trainium (+) or the GPU (-).
    holds_back: with it, two machines that can both be had are at most "either", not "trainium".

    says: the reason, with fields of the case. sources: keys of `evidence`. judged: whether it
    holds by a threshold or an estimate of ours rather than by a fact or an answer alone.
    """

    name: str
    stage: str
    holds: Callable[[Case], bool]
    says: str
    sources: tuple[str, ...]
    closes: frozenset[str] = frozenset()
    votes: int = 0
    holds_back: bool = False

    @property
    def speaks(self) -> str:
        """What it does, in words: "closes both", "+2", "at most either"."""
        if self.closes:
            return f"closes {'both' if len(self.closes) > 1 else ''.join(self.closes)}"
        return "at most either" if self.holds_back else f"{self.votes:+d}"

    @property
    def judged(self) -> bool:
        return self.stage != "veto" or any(key.startswith("judgement:") for key in self.sources)

    def reason(self, case: Case) -> str:
        """What it says of a case for which it holds."""
        return self.says.format(case=case, answers=case.answers, saving=case.saving)
