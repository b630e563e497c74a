"""The report: complete, escaped, the same bytes twice, its first page complete by itself."""

import csv
import dataclasses
import datetime
import html.parser
import io
import re
from functools import cache

import pypdf
import pytest

from utils.cost import tco
from utils.cost.decision import VERDICTS, Answers, Decision, decide, pilot_of
from utils.cost.decision.flips import Flip
from utils.cost.tco.scenario import Context, Option, Scenario
from utils.facts.records import content
from utils.show.report import Report, report, to_csv, to_html, to_pdf
from utils.show.report.build import verdict_of
from utils.show.report.decision_parts import sections, warnings
from utils.show.report.spreadsheet import COLUMNS
from utils.show.report.wording import no_break, quantity, range_of, sentence

TODAY = datetime.date(2026, 11, 21)
NAMES = tuple(tco.scenarios())
CASES = content("decision_cases.yaml")["cases"]
every_scenario = pytest.mark.parametrize("name", NAMES)


@cache
def decision(case: str, comparison: object = None) -> Decision:
    return decide(Answers.from_mapping(CASES[case]["answers"]), comparison=comparison)


@cache
def case_of(verdict: str) -> str:
    """The first case of a verdict that is decided without a comparison of costs."""
    return next(name for name in CASES if decision(name).verdict == verdict)


@cache
def plain(name: str) -> Report:
    return report(tco.scenario(name), today=TODAY)


@cache
def full(name: str, verdict: str = "gpu") -> Report:
    made = decision(case_of(verdict), tco.compare(tco.scenario(name)))
    return report(tco.scenario(name), made, pilot_of(made), today=TODAY)


class Page(html.parser.HTMLParser):
    """Elements, texts and whether every element that was opened is closed."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return spaced(" ".join(self.texts))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def spaced(text: str) -> str:
    return " ".join(text.split())


@cache
def pages(made: Report) -> list[str]:
    """The text of each page of the PDF."""
    reader = pypdf.PdfReader(io.BytesIO(to_pdf(made)))
    return [spaced(page.extract_text()) for page in reader.pages]


@every_scenario
def test_the_answer_has_question_interval_and_probability(name: str) -> None:
    made, compared = plain(name), tco.compare(tco.scenario(name))
    assert made.question == "Does Trainium cost less than the GPU for this work?"
    assert ". " not in made.answer and made.answer.endswith(".")
    assert "an estimated" in made.answer and "nine draws of ten" in made.answer
    assert (made.verdict, made.headline) == verdict_of(compared)
    rows = {row[0]: row[1:] for row in made.costs.rows}
    assert {"Server", f"Cost of one {made.per}", "Servers", "in nine draws of ten"} <= rows.keys()
    assert made.name == f"report-{name}-2026-11-21"


def test_the_verdict_says_no_as_plainly_as_yes() -> None:
    base = tco.scenario("pretrain-70b")
    dear = base.with_values({"trainium.price": 4 * base.inputs["trainium.price"].value})
    cheap = base.with_values({"trainium.price": base.inputs["trainium.price"].value / 4})
    no, yes = verdict_of(tco.compare(dear)), verdict_of(tco.compare(cheap))
    assert no == ("no", "No: the GPU costs less, by these estimates.")
    assert yes == ("yes", "Yes: Trainium costs less, by these estimates.")
    swapped = report(dear, today=TODAY, a="gpu", b="trainium")
    assert swapped.verdict == "yes" and swapped.answer.startswith("The GPU costs an estimated")


@every_scenario
def test_every_input_stands_there_with_its_source_or_as_an_assumption(name: str) -> None:
    made, scenario = plain(name), tco.scenario(name)
    assert {entry.path for entry in made.given} == scenario.inputs.keys()
    page, pdf = Page(to_html(made)).text, " ".join(pages(made))
    letters = re.sub(r"\W+", "", pdf)
    for item in made.given:
        assert item.input.note in item.origin
        known = item.input.source or "Assumption"
        assert known in item.origin
        assert spaced(item.origin) in page
        assert re.sub(r"\W+", "", item.origin) in letters, item.path
        assert spaced(item.value) in page


@every_scenario
def test_a_notebook_shows_the_first_page(name: str) -> None:
    made = full(name)
    shown = made._repr_markdown_()
    for text in (made.question, made.headline, made.answer, *made.break_evens, *made.warnings):
        assert text in shown
    assert "| Cost of one " in shown


@every_scenario
def test_break_evens_within_the_ranges_are_told_and_others_are_called_outside(name: str) -> None:
    scenario, made = tco.scenario(name), plain(name)
    inside = [
        path
        for path, item in scenario.inputs.items()
        if item.low < item.high
        and tco.break_even(scenario, path, low=item.low, high=item.high).values
    ]
    if inside:
        assert len(made.break_evens) == len(inside)
    else:
        assert made.break_evens[0].startswith("No single input")
        assert all(
            break_even.startswith("Outside its range") for break_even in made.break_evens[1:]
        )


@every_scenario
def test_the_page_needs_nothing_else_and_can_be_read_aloud(name: str) -> None:
    text = to_html(full(name))
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "svg"} & {tag for tag, _ in page.tags}
    assert page.all("html") == [{"lang": "en"}]
    assert [item["src"][:22] for item in page.all("img")] == ["data:image/png;base64,"] * 2
    assert all(len((item["alt"] or "").split()) > 8 for item in page.all("img"))
    assert len(page.all("table")) == len(page.all("caption")) == 4
    assert all(item["scope"] in ("col", "row") for item in page.all("th"))
    assert "url(" not in text and "@import" not in text
    outside = [item for item in re.findall(r'="(\w+:[^"]*)"', text) if not item.startswith("data:")]
    links = [item["href"] for item in page.all("a")]
    assert set(outside) == set(links) and all(re.match("https?://", link) for link in links)


@every_scenario
@pytest.mark.parametrize("make", (plain, full), ids=("costs", "decided"))
def test_the_first_page_is_complete_by_itself(name: str, make: object) -> None:
    made = make(name)
    result = pages(made)
    assert 3 <= len(result) <= 6
    first = result[0]
    assert f"Page 1 of {len(result)}" in first
    for text in (made.title, made.headline, made.answer, made.question):
        assert spaced(no_break(text)) in first
    for section in made.sections:
        assert section.title in first
        if section.points and section.most:
            assert spaced(no_break(section.points[0]))[:60] in first
    whole = re.sub(r"\W+", "", " ".join(result))
    for section in made.sections:
        assert all(re.sub(r"\W+", "", point) in whole for point in section.points)


def test_a_document_has_a_title_a_language_and_figures_in_words_and_repeats_itself() -> None:
    made = plain("pretrain-70b")
    pdf = to_pdf(made)
    assert to_pdf(report(tco.scenario("pretrain-70b"), today=TODAY)) == pdf
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert reader.metadata is not None and reader.metadata.title is not None
    assert reader.metadata.title.startswith("Pre-training of a 70B model")
    assert reader.metadata.creation_date == datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    catalog = reader.root_object
    assert catalog["/Lang"] == "en"
    assert catalog["/ViewerPreferences"]["/DisplayDocTitle"]
    assert pdf.count(b"/Alt ") == 2


MARKUP = '<script>alert(1)</script> & "quoted" </title> {{ 7 * 7 }} '


def hostile(times: int = 1) -> Scenario:
    base = tco.scenario("lora-13b")
    bad = MARKUP * times + "Ω≈ß" * 3 + "x" * 60 * times
    names = ("a" * 40 * times, "<b>" + "z" * 40)
    options = {
        name: Option(
            Context("other", bad, bad, bad, "bf16", ""),
            {f: dataclasses.replace(i, note=MARKUP, source="javascript:alert(1)", status="measured")
             for f, i in item.inputs.items()},
        )
        for name, item in zip(names, base.options.values(), strict=True)
    }  # fmt: skip
    return dataclasses.replace(base, name=bad, title=bad, about=bad, unit="<i>", options=options)


@pytest.mark.parametrize("times", (1, 40))
def test_whatever_somebody_wrote_is_escaped_and_breaks_no_page(times: int) -> None:
    made = report(hostile(times), today=TODAY)
    assert re.fullmatch("[a-z0-9-]{1,80}", made.name)
    text = to_html(made)
    page = Page(text)
    assert "<script" not in text and "<b>" not in text and "<i>" not in text
    assert "javascript:" not in " ".join(str(item["href"]) for item in page.all("a"))
    assert "alert(1)" in page.text and "{{ 7 * 7 }}" in page.text
    assert "<" not in made._repr_markdown_()
    result = pages(made)
    assert "Before you rely on this" in result[0] and "All inputs" not in result[0]
    assert "Ω≈ß" in " ".join(result) or times > 1


def test_a_character_that_the_type_lacks_is_a_square(capfd: pytest.CaptureFixture) -> None:
    odd = dataclasses.replace(tco.scenario("lora-13b"), title="Größe 大 \U0001f9e0 of 1\x00")
    assert "Größe □ □ of 1□" in pages(report(odd, today=TODAY))[0]
    assert capfd.readouterr().err == ""


def test_a_table_for_spreadsheets_has_every_number_and_no_formula() -> None:
    scenario = tco.scenario("chat-service")
    rows = list(csv.DictReader(io.StringIO(to_csv(plain("chat-service")))))
    assert tuple(rows[0]) == COLUMNS
    inputs = {
        ".".join(filter(None, (row["option"], row["name"]))): row
        for row in rows
        if row["kind"] == "input"
    }
    assert inputs.keys() == scenario.inputs.keys()
    for path, item in scenario.inputs.items():
        assert float(inputs[path]["value"]) == item.value and inputs[path]["unit"] == item.unit
        assert inputs[path]["status"] == item.status
    costs = [row for row in rows if row["kind"] == "cost" and row["option"] == "gpu"]
    assert sum(float(row["value"]) for row in costs) == pytest.approx(scenario.cost("gpu").total)
    evil = dataclasses.replace(scenario, title='=HYPERLINK("x")')
    assert "'=HYPERLINK" in to_csv(report(evil, today=TODAY))


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_decision_gives_the_headline_reasons_flips_and_risks(verdict: str) -> None:
    made = full("pretrain-70b", verdict)
    given = decision(case_of(verdict), tco.compare(tco.scenario("pretrain-70b")))
    assert made.verdict == given.verdict
    assert made.headline == f"{given.headline}."
    assert made.question == "On which machine should this work run?"
    titles = [section.title for section in made.sections]
    assert {"Why", "What would change the verdict", "Risks", "The pilot"} <= set(titles)
    page = Page(to_html(made)).text
    for item in (*given.decisive, *given.risks):
        assert spaced(sentence(item.text))[1:] in page
    assert not any("another cost comparison" in warning for warning in made.warnings)


def test_a_flip_of_money_is_told_in_digits() -> None:
    flips = " ".join(sections(decision("museum-captions"))[1].points)
    assert "in a year, in one currency throughout? Now: 9,000 money per year. With 48,000" in flips


def test_a_flip_next_to_the_present_value_is_told_as_more_than_that() -> None:
    row = decision(case_of("either"))
    edge = Flip("runs_per_year", 2, 2.01, "trainium")
    one = Flip("engineers", 3, 1, "gpu")
    less = Flip("deadline_weeks", 20, 19.9, "gpu")
    text = sections(dataclasses.replace(row, flips=(edge, one, less)))[1].points
    assert text[0].endswith("Now: 2 runs per year. With more than 2 runs per year: Trainium.")
    assert text[1].endswith("Now: 3 engineers. With 1 engineer: GPU.")
    assert text[2].endswith("With less than 20 weeks: GPU.")


def test_a_verdict_that_does_not_rest_on_these_costs_is_told() -> None:
    other = decision(case_of("gpu"), tco.compare(tco.scenario("lora-13b")))
    none = decision(case_of("gpu"))
    compared = tco.compare(tco.scenario("pretrain-70b"))
    assert "another cost comparison" in warnings(other, compared)[0]
    assert "without these costs" in warnings(none, compared)[0]


@pytest.mark.parametrize("name", ("decision", "pilot"))
def test_something_else_than_a_decision_or_a_pilot_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: str is not allowed"):
        report(tco.scenario("lora-13b"), **{name: "yes"})


def test_energy_is_shown_where_it_is_given() -> None:
    base = tco.scenario("lora-13b")
    owned = {
        "power": tco.assume(0.7, "kW", 0.5, 0.9, "a chip with its share of the server"),
        "pue": tco.assume(1.2, "ratio", 1.1, 1.5, "a new building"),
        "carbon": tco.assume(0.3, "kg/kWh", 0.1, 0.5, "a mixed grid"),
    }
    made = report(dataclasses.replace(base, shared={**base.shared, **owned}), today=TODAY)
    rows = {row[0]: row[1] for row in made.costs.rows}
    assert rows["Energy of one run"].endswith(" kWh")
    assert rows["Carbon dioxide of one run"].endswith(" kg")
    assert not any(row[0].startswith("Energy") for row in plain("lora-13b").costs.rows)


def test_values_and_ranges_are_said_in_words() -> None:
    assert all(field.label for field in tco.FIELDS.values())
    scenario = tco.scenario("lora-13b")

    def wording(path: str, value: float) -> str:
        return quantity(path, value, scenario)

    assert wording("trainium.mfu", 0.28083) == "28.1 %"
    assert wording("work", 60e6) == "60 million tokens"
    assert wording("trainium.price", 35.7608) == "USD 35.76 an hour"
    assert wording("startup", 0.25) == "15 minutes"
    assert wording("restart", 1.0000000001) == "1 hour"
    assert wording("trainium.engineers", 1) == "1 engineer"
    assert wording("trainium.peak", 667e12) == "667 TFLOPS"

    def ranged(path: str, low: float, high: float) -> str:
        item = dataclasses.replace(scenario.inputs[path], value=low, low=low, high=high)
        return range_of(path, item, scenario)

    assert ranged("trainium.price", 30, 40.5) == "USD 30 to 40.50 an hour"
    assert ranged("queue", 0, 0.5) == "0 to 30 minutes"
    assert ranged("runs", 1, 4) == "1 to 4 runs"
    assert ranged("startup", 0.5, 2) == "30 minutes to 2 hours"
    assert ranged("startup", 0.5, 0.5) == "fixed"
