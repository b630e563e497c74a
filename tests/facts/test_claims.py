"""The claims ledger is complete and readable, and its questions give no verdict away."""

import re
from pathlib import Path

import pytest

from utils.course.quiz import FOLDER, ClaimQuestion, questions
from utils.course.quiz import claims as ask
from utils.facts import VERDICTS, claim, claims
from utils.facts.ledger import ARTICLES, DATA

LESSONS = sorted(path.stem for path in FOLDER.glob("lesson*.yaml"))


def lesson_claims(name: str) -> dict[str, ClaimQuestion]:
    return questions(name).claims


def test_every_claim_has_a_verdict_a_statement_and_a_number_of_its_own() -> None:
    every = claims()
    assert len({entry.id for entry in every}) == len(every) > 350
    assert {entry.verdict for entry in every} == set(VERDICTS)
    assert {entry.id[0] for entry in every} == set(ARTICLES)
    for item in every:
        assert re.fullmatch(r"[A-D]-\d{3}", item.id) and item.article
        assert item.text and item.correct and item.topic, item.id


def test_what_evidence_settles_has_a_source_or_says_that_there_is_none() -> None:
    without = [item.id for item in claims() if item.verdict == "outdated" and not item.source]
    assert without == []
    assert all(item.source.startswith("https://") for item in claims() if item.source)


def test_the_ledger_names_no_file_or_line_of_the_articles() -> None:
    text = (DATA / "claims.csv").read_text(encoding="utf-8")
    assert not re.search(r"\.txt|\bseed\b|\bline \d|\.yaml", text)


def test_claims_are_found_by_text_topic_and_verdict() -> None:
    result = claims("gradscaler")
    assert result and all("GradScaler" in f"{item.text} {item.correct}" for item in result)
    assert {item.topic for item in claims(topic="nki")} == {"nki"}
    assert claims("", verdict="wrong", topic="nki") != claims(verdict="wrong")


def test_a_topic_verdict_or_claim_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no topic 'cake': there are adoption"):
        claims(topic="cake")
    with pytest.raises(ValueError, match="no verdict 'false': there are confirmed"):
        claims(verdict="false")
    with pytest.raises(KeyError, match="A-999"):
        claim("A-999")


@pytest.mark.parametrize("name", LESSONS)
def test_hints_are_for_wrong_verdicts_and_do_not_name_the_right_one(name: str) -> None:
    for key, question in lesson_claims(name).items():
        right = claim(question.claim).verdict
        assert set(question.hints) <= set(VERDICTS) - {right}, key
        assert question.hints, f"{name} {key}: at least one hint of its own"
        for verdict in set(VERDICTS) - {right}:
            text = repr(ask(name, **{key: verdict})).partition(f"{key}  ")[2].partition("\nc")[0]
            assert f"→ {verdict} is not it: " in text
            assert claim(question.claim).correct not in text
            assert not re.search(rf"\b{right}\b", text.partition("not it:")[2]), (key, verdict)


@pytest.mark.parametrize("name", [lesson for lesson in LESSONS if lesson_claims(lesson)])
def test_a_right_verdict_is_answered_with_the_statement_and_its_source(name: str) -> None:
    for key, question in lesson_claims(name).items():
        asked = claim(question.claim)
        text = repr(ask(name, **{key: f" {asked.verdict.upper()} "}))
        assert f"{asked.verdict} is right. {asked.correct}" in text
        assert asked.source and asked.source in text


def test_unanswered_claims_are_shown_with_the_meaning_of_the_verdicts(course: Path) -> None:
    text = repr(ask("lab99"))
    assert "An article says: Trainium2 became generally available in 2026." in text
    assert "→ your verdict?" in text and "outdated: was true once" in text
    assert "An article says" in ask("lab99")._repr_html_()


def test_what_cannot_be_judged_is_said(course: Path) -> None:
    assert "'false' is not a verdict: choose one of confirmed" in repr(ask("lab99", c1="false"))
    assert "there is no c9: the claims are c1" in repr(ask("lab99", c9="wrong"))
    assert repr(ask()) == 'claims(): name a notebook, as in claims("lesson03")'
    assert "there is no quiz for 'lab77'" in repr(ask("lab77"))


def test_the_table_to_search_is_a_widget_that_needs_no_network(monkeypatch) -> None:
    from utils.show.widgets import searchable

    shown: list = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    rows = [("A-1", "wrong", "x < 1", "https://www.example.org/page")]
    searchable(("id", "verdict", "text", "source"), rows, choose=("verdict",))
    (place,) = shown
    library, table = (output["data"]["text/html"] for output in place.outputs)
    assert len(library) > 100_000, "the library is within"
    assert "x &lt; 1" in table and ">example.org</a>" in table
    assert "<script src=" not in library + table
