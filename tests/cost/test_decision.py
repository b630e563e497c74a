"""The decision rule: described cases, no dead row, true flips; more trouble never helps."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.cost.tco_toy import toy
from utils.audit import Report, audit, audit_source
from utils.cost.decision import (
    JUDGEMENTS,
    QUESTIONS,
    VERDICTS,
    AnswerError,
    Answers,
    Decision,
    Saving,
    adjust,
    decide,
)
from utils.cost.decision.effort import pilot_weeks, port_effort, port_weeks
from utils.cost.decision.evidence import evidence
from utils.cost.decision.findings import DYNAMIC, NOTHING, OWN, PACKAGED, correct_answers, summarise
from utils.cost.decision.flips import MONEY, verdict_for
from utils.cost.decision.questions import SHAPES, UNSURE, offers
from utils.cost.decision.rules import KINDS, ROWS, Case, Limit, outcome
from utils.cost.decision.verdict import CONFIDENCES, WORK
from utils.cost.tco import compare
from utils.facts.records import content

AUDITED = content("porting_cases.yaml")
_READ = content("decision_cases.yaml")
CASES: dict[str, dict[str, Any]] = _READ["cases"]
BLIND: dict[str, dict[str, Any]] = _READ["written_without_the_rule"]
ORDER = ("gpu", "either", "trainium")


@cache
def decision(name: str) -> Decision:
    row = {**CASES, **BLIND}[name]
    saving = Saving(*row["saving"]) if "saving" in row else None
    return decide(Answers.from_mapping(row["answers"]), comparison=saving)


PLAIN = Answers.from_mapping(CASES["translation-pretraining"]["answers"])
GOOD = Saving(*CASES["translation-pretraining"]["saving"])


@st.composite
def answers(draw: st.DrawFn, **fixed: Any) -> Answers:
    given = {}
    for name, row in QUESTIONS.items():
        if name in fixed:
            given[name] = fixed[name]
        elif row.allowed:
            given[name] = draw(st.sampled_from(row.allowed))
        elif row.whole:
            given[name] = draw(st.integers(int(row.low), 12))
        else:
            given[name] = draw(st.floats(row.low, min(row.high, 1e7)))
    try:
        return Answers(**given)
    except AnswerError:  # vLLM does not train
        assume(False)
        raise


@st.composite
def savings(draw: st.DrawFn) -> Saving:
    """The saving of any sample: its points and its share of gains fit by construction."""
    middle = draw(st.floats(-0.8, 0.5))
    below, above = draw(st.floats(0.01, 0.5)), draw(st.floats(0.01, 0.4))
    sample = np.interp(
        np.linspace(0, 1, 201), (0, 0.5, 1), (middle - below, middle, middle + above)
    )
    sample = np.minimum(sample, 1)
    low, mid, high = (float(item) for item in np.quantile(sample, (0.05, 0.5, 0.95)))
    whole = draw(st.floats(1e3, 1e7))
    return Saving(low, mid, high, float(np.mean(sample > 0)), mid * whole)


# Cases, verdicts, rows.


@pytest.mark.parametrize("name", CASES)
def test_described_cases_get_the_verdict_that_is_right_for_them(name: str) -> None:
    result, row = decision(name), CASES[name]
    assert result.verdict == row["verdict"], result
    assert row["about"].count(".") >= 2 and row["why"]
    assert result.reasons and result.decisive and result.risks
    assert result.confidence in CONFIDENCES and result.because


@pytest.mark.parametrize("name", BLIND)
def test_cases_written_without_the_rule_say_where_it_differs(name: str) -> None:
    row = BLIND[name]
    assert decision(name).verdict == row.get("rule", row["verdict"]), decision(name)
    assert ("rule" in row) == ("because" in row) and row["why"]
    assert row["verdict"] not in (row.get("rule"), row.get("at_first"))


def test_how_often_an_adviser_who_did_not_know_the_rule_agreed_with_it() -> None:
    assert len(BLIND) == 24 and not set(BLIND) & set(CASES)
    assert sum("at_first" not in row for row in BLIND.values()) == 16
    assert sum("rule" not in row for row in BLIND.values()) == 19


def test_no_is_an_answer() -> None:
    verdicts = Counter(row["verdict"] for row in CASES.values())
    assert set(verdicts) == set(VERDICTS) and len(CASES) >= 14
    assert verdicts["gpu"] + verdicts["neither"] >= 5 and verdicts["either"] >= 2


def test_every_row_decides_a_case() -> None:
    deciding = {
        reason.rule
        for name in (*CASES, *BLIND)
        for reason in decision(name).reasons
        if reason.decides
    }
    assert [row.name for row in ROWS if row.name not in deciding] == []
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_vetoes_stand_before_the_money_and_preferences_after_it() -> None:
    stages = [row.stage for row in ROWS]
    assert stages == sorted(stages, key=("veto", "money", "preference").index)
    for row in ROWS:
        assert bool(row.closes) == (row.stage == "veto")
        assert bool(row.closes) + bool(row.votes) + row.holds_back == 1


def test_preferences_are_equal_and_weigh_less_than_clear_money_against() -> None:
    preferences = [row.votes for row in ROWS if row.stage == "preference" and row.votes]
    assert set(preferences) == {1, -1}
    against = sum(row.votes for row in ROWS if "expensive" in row.name)
    lead = JUDGEMENTS["lead"].number
    assert sum(preference for preference in preferences if preference > 0) + against <= -lead


def test_every_row_question_and_risk_has_sources_that_exist() -> None:
    keys = {key for row in (*ROWS, *QUESTIONS.values()) for key in row.sources}
    assert all(row.sources for row in (*ROWS, *QUESTIONS.values()))
    for item in map(evidence, keys):
        assert item.text and item.status and item.date
    for name in CASES:
        assert {risk.kind for risk in decision(name).risks} <= set(KINDS)
    with pytest.raises(KeyError, match="no judgement"):
        evidence("judgement:taste")


def test_a_row_that_reads_a_judgement_names_one() -> None:
    reading = [
        row
        for row in ROWS
        for limit in row.when.values()
        if isinstance(limit, Limit) and set(structs.astuple(limit)[1:]) & set(JUDGEMENTS)
    ]
    assert len(reading) > 5
    for row in reading:
        assert any(key.startswith("judgement:") for key in row.sources), row.name
    assert all(row.why and row.low <= row.number <= row.high for row in JUDGEMENTS.values())


def test_every_condition_reads_values_that_a_case_has() -> None:
    case = Case(PLAIN, GOOD, adjust())
    for row in ROWS:
        for name, wanted in row.when.items():
            case.value_of(name)
            if isinstance(wanted, Limit):
                for limit in structs.astuple(wanted)[1:]:
                    assert limit is None or isinstance(case.value_of(limit), int | float), row.name
            elif name in QUESTIONS and QUESTIONS[name].allowed:
                words = wanted if isinstance(wanted, list) else [wanted]
                assert set(words) <= set(QUESTIONS[name].allowed), row.name


# Anything that is allowed.


@settings(max_examples=60, deadline=None)
@given(answers(), st.none() | savings())
def test_any_valid_answers_give_reasons_and_all_flips_and_only_true_ones(
    given: Answers, saving: Saving | None
) -> None:
    result = decide(given, comparison=saving)
    assert result.verdict in VERDICTS and result.reasons
    assert result.port_weeks > 0 and result.pilot_weeks == pilot_weeks()
    assert result.verdict in repr(result).lower() and "risk" in result._repr_markdown_()

    def verdict(saving: Saving | None = saving, **changed: Any) -> str:
        return verdict_for(given.changed(**changed), saving, NOTHING, adjust())

    for flip in result.flips:
        if flip.field == MONEY:
            assert saving is not None
            again = verdict(saving.moved(flip.to - saving.middle))
        else:
            again = verdict(**{flip.field: flip.to})
        assert again == flip.verdict != result.verdict
    listed = {(flip.field, flip.to) for flip in result.flips}
    for name, value in given.others():
        assert (verdict(**{name: value}) != result.verdict) == ((name, value) in listed)


# More trouble never helps.


def no_better(after: str, before: str) -> bool:
    """Whether Trainium is not chosen more than before; neither chooses no machine at all."""
    if after == "neither":
        return True
    return before != "neither" and ORDER.index(after) <= ORDER.index(before)


@pytest.mark.parametrize("field", ["kernels", "shapes"])
@settings(max_examples=150, deadline=None)
@given(given=answers(), saving=st.none() | savings())
def test_more_custom_cuda_or_shapes_known_later_never_help_trainium(
    field: str, given: Answers, saving: Saving | None
) -> None:
    verdicts = [
        verdict_for(given.changed(**{field: value}), saving, NOTHING, adjust())
        for value in QUESTIONS[field].allowed
    ]
    assert all(no_better(after, before) for before, after in pairwise(verdicts))


@settings(max_examples=150, deadline=None)
@given(
    answers(), st.none() | savings(), st.sampled_from([r for r in ROWS if "trainium" in r.closes])
)
def test_a_veto_more_never_turns_a_no_into_a_yes(given: Answers, saving: Any, veto: Any) -> None:
    case = Case(given, saving, adjust())
    before = outcome(case).verdict
    assert no_better(outcome(case, (structs.replace(veto, when={}), *ROWS)).verdict, before)


@settings(max_examples=150, deadline=None)
@given(answers(), savings(), st.floats(0, 0.6))
def test_a_larger_and_surer_saving_never_turns_trainium_away(
    given: Answers, saving: Saving, by: float
) -> None:
    assume(saving.high + by <= 1)
    more = saving.moved(by)
    assert more.probability >= saving.probability - 0.02
    before = verdict_for(given, saving, NOTHING, adjust())
    after = verdict_for(given, more, NOTHING, adjust())
    assert before == after or (before, after) in {
        ("gpu", "either"),
        ("gpu", "trainium"),
        ("either", "trainium"),
        ("neither", "trainium"),
    }


@given(answers(capacity="both"), savings())
def test_preferences_never_make_up_for_money_that_is_clearly_against(
    given: Answers, saving: Saving
) -> None:
    dear = Saving(-0.6, -0.3, -0.1, 0.01, -1e6)
    assert verdict_for(given, dear, NOTHING, adjust()) in ("gpu", "neither")
    assume(saving.middle < JUDGEMENTS["least_saving"].number)
    assert verdict_for(given, saving, NOTHING, adjust()) != "trainium"


@settings(max_examples=100, deadline=None)
@given(answers(), st.floats(0.5, 0.99), st.floats(0, 0.49))
def test_a_higher_probability_alone_never_moves_from_trainium_to_gpu(
    given: Answers, probability: float, more: float
) -> None:
    saving = Saving(-0.1, 0.2, 0.3, probability * 0.9 + 0.05, 1e5)
    surer = replace(saving, probability=min(0.95, saving.probability + more))
    before = verdict_for(given, saving, NOTHING, adjust())
    assert not (before == "trainium" and verdict_for(given, surer, NOTHING, adjust()) != "trainium")


# The audit.


def report(*rules: str) -> Report:
    """A real audit of a source that breaks these rules of the audit."""
    return audit_source("\n".join(dedent(AUDITED[rule]["found"]) for rule in rules), "train.py")


def test_an_audit_overrules_an_answer_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from torch.utils.cpp_extension import BuildExtension, CUDAExtension\n"
        "setup(ext_modules=[CUDAExtension('scan', ['scan.cu'])])\n"
    )
    result = decide(PLAIN, audit=audit(tmp_path), comparison=GOOD)
    assert result.used.kernels == "known replacements" and result.answers.kernels == "none"
    assert [contradiction.field for contradiction in result.contradictions] == ["kernels"]
    assert "'none'" in result.contradictions[0].text and "cuda-extension" in repr(result)
    assert "kernels to replace" in {reason.rule for reason in result.reasons}


def test_many_kernels_of_ones_own_are_central_and_can_close_trainium() -> None:
    source = "\n".join(
        f"import triton\n@triton.jit\ndef kernel_{number}(x):\n    pass\n" for number in range(4)
    )
    alone = PLAIN.changed(engineers=1, deadline_weeks=20)
    assert decide(alone, comparison=GOOD).verdict == "trainium"
    result = decide(alone, audit=audit_source(source, "kernels.py"), comparison=GOOD)
    assert result.used.kernels == "central" and result.verdict == "gpu"
    assert [item.rule for item in result.decisive] == ["deadline"]


def test_nobody_to_port_closes_trainium_however_much_it_would_save() -> None:
    rich = PLAIN.changed(deadline_weeks=200, spend_per_year=1e8)
    result = decide(rich.changed(engineers=0), comparison=GOOD)
    assert result.verdict == "gpu" and [item.rule for item in result.decisive] == ["no hands"]
    assert [flip.verdict for flip in result.flips if flip.field == "engineers"] == ["trainium"]


def test_a_promise_where_only_the_older_generation_is_listed_has_to_name_it() -> None:
    result = decide(PLAIN.changed(region="us-west-2"), comparison=GOOD)
    assert result.verdict == "either" and "held back by 'older generation'" in result.because
    assert [item.rule for item in result.decisive] == ["older generation"]
    (asked,) = (item for item in result.missing if item.what == "the generation promised")
    assert asked.verdicts == ("gpu", "trainium")
    older = PLAIN.changed(region="us-west-2", framework="JAX")  # runs on every generation
    assert decide(older, comparison=GOOD).verdict == "trainium"


def test_a_gpu_that_is_probably_much_cheaper_is_chosen_where_it_can_be_had() -> None:
    dear = Saving(-0.35, -0.12, 0.08, 0.14, -1e5)
    eager = PLAIN.changed(experience="Trainium", framework="torch.compile")
    assert decide(eager, comparison=dear).verdict == "gpu"
    assert decide(eager, comparison=replace(dear, middle=-0.04)).verdict == "either"
    assert decide(eager.changed(capacity="Trainium only"), comparison=dear).verdict == "trainium"


def test_neither_for_want_of_a_gpu_says_what_closes_trainium() -> None:
    assert {item.rule for item in decision("car-perception").decisive} == {
        "no GPU",
        "no architecture path",
    }
    votes = {item.rule for item in decision("radio-archive").decisive}
    assert "no GPU" in votes and len(votes) > 2


def test_shapes_found_in_the_source_overrule_static_ones() -> None:
    result = decide(PLAIN, audit=report("data-dependent-shape"), comparison=GOOD)
    assert result.used.shapes in SHAPES[1:]
    assert "shapes" in {contradiction.field for contradiction in result.contradictions}


def test_an_audit_never_makes_an_answer_better() -> None:
    clean = audit_source("import torch\n", "clean.py")
    hard = PLAIN.changed(kernels="central", shapes="data-dependent")
    result = decide(hard, audit=clean, comparison=GOOD)
    assert result.used == hard
    assert {contradiction.field for contradiction in result.contradictions} == {"kernels", "shapes"}
    assert all("the answer stands" in contradiction.text for contradiction in result.contradictions)
    agreed = decide(PLAIN, audit=clean, comparison=GOOD)
    assert agreed.contradictions == () and agreed.confidence == "high"


@pytest.mark.parametrize("rule", [*OWN, *PACKAGED, *DYNAMIC])
def test_each_rule_of_the_audit_that_is_read_is_seen(rule: str) -> None:
    result = decide(PLAIN, audit=report(rule), comparison=GOOD)
    assert result.used != result.answers
    assert any(f" of {rule}" in contradiction.text for contradiction in result.contradictions)


def test_what_could_not_be_read_is_named() -> None:
    result = decide(PLAIN, audit=audit_source("def (:\n", "broken.py"), comparison=GOOD)
    assert "could not be read" in repr(result) and result.confidence != "high"


def test_errors_of_the_audit_lengthen_the_port() -> None:
    moves = "import torch\n" + "x = torch.ones(2).cuda()\n" * 80
    result = decide(PLAIN, audit=audit_source(moves, "train.py"), comparison=GOOD)
    assert result.port_weeks > decide(PLAIN, comparison=GOOD).port_weeks
    assert result.contradictions == ()


# The saving.


def test_the_cost_models_comparison_is_a_saving_of_trainium_only() -> None:
    compared = compare(toy(a={"price": (9.0, 8.0, 12.0)}))
    result = Saving.of(compared)
    assert (result.low, result.high) == pytest.approx(compared.interval())
    assert result.low < result.middle < result.high
    assert (result.probability, result.amount) == (compared.probability, compared.amount)
    assert decide(PLAIN, comparison=compared).saving == result
    with pytest.raises(ValueError, match="'b' runs on 'gpu'"):
        Saving.of(compare(compared.scenario, "b", "a"))
    with pytest.raises(
        TypeError, match="comparison: dict is not allowed; allowed: what utils.cost.tco"
    ):
        decide(PLAIN, comparison={"low": 0.1})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((0.3, 0.2, 0.4, 0.9, 1), "low, middle, high"),
        ((0.1, 0.2, 1.1, 0.99, 1), "at most 1"),
        ((0.1, 0.2, 0.3, 1.2, 1), "probability: 1.2"),
        ((0.1, 0.2, 0.3, 0.4, 1), "probability: 0.4 does not fit"),
        ((-0.3, -0.2, -0.1, 0.4, 1), "at most"),
        ((float("nan"), 0.2, 0.3, 0.4, 1), "low: nan"),
        (("0.1", 0.2, 0.3, 0.4, 1), "low: '0.1'"),
    ],
)
def test_impossible_savings_are_refused(given: tuple[Any, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Saving(*given)


@given(savings(), st.floats(-1, 1), st.floats(0, 0.5))
def test_moving_a_saving_up_never_lowers_its_probability(
    saving: Saving, by: float, more: float
) -> None:
    assume(saving.high + by + more <= 1)
    assert saving.moved(by + more).probability >= saving.moved(by).probability - 0.01


# Bad input.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "training"),
        ("kernels", None),
        ("region", "Frankfurt"),
        ("spend_per_year", -1),
        ("spend_per_year", float("inf")),
        ("runs_per_year", "many"),
        ("engineers", 1.5),
        ("engineers", True),
        ("deadline_weeks", 0),
        ("gate", ["automatic"]),
    ],
)
def test_bad_answers_name_field_value_and_what_is_allowed(field: str, value: object) -> None:
    with pytest.raises(AnswerError) as error:
        PLAIN.changed(**{field: value})
    text = str(error.value)
    assert text.startswith(f"{field}: {value!r}") and QUESTIONS[field].says_allowed() in text


def test_a_question_that_is_none_and_judgements_that_are_not_whole_are_named() -> None:
    with pytest.raises(AnswerError, match="budget: no such question; allowed: task, "):
        PLAIN.changed(budget=1)
    assert "from 0 to 1,000,000 runs" in QUESTIONS["runs_per_year"].says_allowed()
    with pytest.raises(ValueError, match=r"'clear_probability' is missing; allowed: adjust"):
        decide(PLAIN, judgements={"lead": 3})


def test_names_that_lack_or_are_unknown_and_answers_that_contradict_each_other() -> None:
    row = CASES["translation-pretraining"]["answers"]
    with pytest.raises(AnswerError, match="budget: no such question; allowed: task"):
        Answers.from_mapping({**row, "budget": 1})
    with pytest.raises(AnswerError, match="gate: no answer; allowed: 'automatic'"):
        Answers.from_mapping({name: row[name] for name in row if name != "gate"})
    with pytest.raises(AnswerError, match="framework: 'vLLM' serves models"):
        PLAIN.changed(framework="vLLM")
    with pytest.raises(TypeError, match="answers: dict"):
        decide(row)
    with pytest.raises(TypeError, match="audit: str"):
        decide(PLAIN, audit="src/")


def test_judgements_can_be_changed_within_what_is_allowed() -> None:
    assert decide(PLAIN, comparison=GOOD).verdict == "trainium"
    assert decide(PLAIN, comparison=GOOD, judgements=adjust(least_saving=0.3)).verdict == "either"
    with pytest.raises(ValueError, match="taste: no such judgement; allowed are clear_prob"):
        adjust(taste=1)
    with pytest.raises(ValueError, match="least_saving: 2 is not allowed; allowed is 0 to 1"):
        adjust(least_saving=2)
    with pytest.raises(ValueError, match="leaning_probability"):
        adjust(leaning_probability=0.95)


def test_every_judgement_matters_to_some_case() -> None:
    kernels = audit_source(
        "import triton\n@triton.jit\ndef kernel(x):\n    pass\nmask = x[x > 0].cuda()\n", "k.py"
    )
    shaped = report("data-dependent-shape", "triton")
    cases = [
        (Answers.from_mapping(row["answers"]), Saving(*row["saving"]) if "saving" in row else None)
        for row in CASES.values()
    ]
    cases += [(item.changed(engineers=0), saving) for item, saving in cases]
    cases += [(item.changed(engineers=9), saving) for item, saving in cases]

    def texts(values: Any) -> list[Any]:
        results = []
        for item, saving in cases:
            for tree in (NOTHING, summarise(kernels, values), summarise(shaped, values)):
                case = Case(correct_answers(item, tree), saving, values, tree)
                results.append((case.answers, case.weeks, case.price, outcome(case).rows))
                results.append(outcome(case).verdict)
        return results

    usual = texts(adjust())
    for name, row in JUDGEMENTS.items():
        changed = {"clear_probability": 0.99, "leaning_probability": 0.5}.get(name)
        ends = [changed] if changed else [row.low, row.high]
        assert any(texts(adjust(**{name: end})) != usual for end in ends), name


# The questionnaire and what is shown.


def test_the_questionnaire_is_short_and_says_why() -> None:
    assert 8 <= len({row.topic for row in QUESTIONS.values()}) <= 12
    assert set(QUESTIONS) == {dataclass_field for dataclass_field in Answers.__dataclass_fields__}
    assert all(row.asks.endswith("?") and row.why for row in QUESTIONS.values())
    assert all(UNSURE[name] in QUESTIONS[name].allowed for name in UNSURE)
    assert "trn2" in offers()["us-east-2"] and "trn2" not in offers()["eu-north-1"]


def test_missing_names_what_could_change_the_verdict_and_nothing_else() -> None:
    unknown = decide(PLAIN.changed(capacity="not asked yet"))
    what = {item.what for item in unknown.missing}
    assert {"a cost comparison", "the answer on capacity"} <= what
    assert all(unknown.verdict not in item.verdicts and item.verdicts for item in unknown.missing)
    vetoed = decision("insurer-tensorflow")
    assert [item.what for item in vetoed.missing] == []


def test_a_port_is_longer_with_more_to_do_and_shorter_with_more_hands() -> None:
    values = adjust()
    plain = port_effort(PLAIN, values)
    assert plain < port_effort(PLAIN.changed(kernels="known replacements"), values)
    assert plain < port_effort(PLAIN.changed(experience="none"), values)
    assert port_weeks(PLAIN.changed(engineers=1), values) == plain
    assert port_weeks(PLAIN.changed(engineers=100), values) == plain / values["team"]
    assert port_weeks(PLAIN.changed(engineers=0), values) > plain


def test_markdown_holds_the_same_as_the_decision() -> None:
    result = decision("grid-load")
    text = result._repr_markdown_()
    for part in (result.headline, *(reason.text for reason in result.reasons)):
        assert part in text
    assert all(risk.mitigation in text for risk in result.risks)
    assert "![" not in text and "<" not in text


def test_the_flips_in_plain_text_are_three_and_start_with_what_can_be_acted_on() -> None:
    result = decision("translation-pretraining")
    (line,) = (item for item in repr(result).splitlines() if item.startswith("  flips: "))
    message = line.removeprefix("  flips: ").split("; ")
    assert len(message) == 3 and set(message) <= {flip.text for flip in result.flips}
    assert not {item.split()[0] for item in message} & set(WORK)
