"""Facts are complete, consistent and traceable: value, unit, source, status, date."""

import datetime
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.cli.commands import facts as command
from utils.facts import STATUSES, Sources, Unknown, fact, figure, figures, stale, table, units
from utils.facts.ages import LIMITS, PRICE_DAYS, age, last_try
from utils.facts.records import DATA, FILES, Figure, Source, _computed, _figure, _leaves, content
from utils.facts.statements import facts

WORDS = {"text", "date", "bool", "billion"}
DAY = datetime.date(2026, 11, 20)
EVERY = [*figures().values()]
QUOTED = [item for main in EVERY for item in (main, *main.also, *main.history)]


def derive(formula: str, unit: str) -> float | None:
    return _computed(Figure("test", None, unit, "", "", "derived", DAY, formula=formula))


def test_every_figure_says_where_it_comes_from_and_how_sure_it_is() -> None:
    assert len(EVERY) > 500
    for item in QUOTED:
        assert item.source.startswith("https://"), item
        assert item.status in STATUSES, item
        assert type(item.date) is datetime.date and item.date <= datetime.date.today(), item
        assert (item.status == "derived") == bool(item.formula), item


def test_every_unit_is_known_and_fits_the_value() -> None:
    for item in QUOTED:
        numeric = isinstance(item.value, int | float) and not isinstance(item.value, bool)
        if item.unit in ("text", "date", "bool"):
            assert not numeric, item
        elif numeric and item.unit not in units.COUNTS | WORDS:
            assert item.to(item.unit) == pytest.approx(item.value)


def test_other_sources_measure_the_same_thing_and_disagree() -> None:
    conflicts = [item for item in EVERY if item.also]
    assert {"trainium2.hbm.bandwidth", "trainium3.hbm.bandwidth", "trainium1.hbm.bandwidth"} <= {
        conflict.key for conflict in conflicts
    }
    for main in conflicts:
        for other in main.also:
            if isinstance(other.value, int | float) and other.unit not in units.COUNTS:
                assert other.to(main.unit) != main.value, main
            else:
                assert other.value != main.value, main


def test_earlier_values_are_earlier_and_in_order() -> None:
    for item in EVERY:
        dates = [old.date for old in item.history]
        assert dates == sorted(dates), item
        assert all(date < item.date for date in dates), item


@pytest.mark.parametrize("name", FILES)
def test_every_source_is_used_and_a_formula_is_all_that_a_derived_figure_has(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8").partition("figures:")[2]
    unused = [source for source in content(name)["sources"] if f"source: {source}" not in text]
    assert unused == []
    for line in text.splitlines():
        if "formula:" in line:
            assert "value:" not in line and "source:" not in line and "status:" not in line


@pytest.mark.parametrize(
    ("chip", "dtypes"),
    [
        ("trainium1", ("bf16", "fp32")),
        ("trainium2", ("bf16", "cfp8")),
        ("trainium3", ("bf16", "mxfp8")),
    ],
)
def test_clock_times_array_gives_the_documented_rate_of_a_core(chip: str, dtypes: tuple) -> None:
    for dtype in dtypes:
        made = figure(f"{chip}.core_rate.{dtype}_from_clock").number
        assert made == pytest.approx(figure(f"{chip}.core_rate.{dtype}").number, rel=0.01)


def test_a_price_per_peak_is_the_price_by_the_rates_of_all_chips() -> None:
    price = figure("p5.48xlarge.price.capacity_block").number
    peak = figure("p5.48xlarge.accelerators").number * figure("h100.rate.bf16").to("PFLOPS")
    made = figure("p5.48xlarge.price_per_peak.bf16.capacity_block")
    assert made.number == pytest.approx(price / peak)
    assert made.date == min(figure(key).date for key in (made_of(made)))


def made_of(item: Figure) -> list[str]:
    return [part.partition("}")[0] for part in item.formula.split("{")[1:]]


def test_an_unknown_figure_says_which_and_where_to_look() -> None:
    assert figure("trainium4.power").text == "not published"
    with pytest.raises(
        Unknown, match=r"trainium4.power \[W\] is not known.*as of 2026-11-20.*nand"
    ):
        figure("trainium4.power").to("kW")
    with pytest.raises(KeyError, match="near it there are trainium2.hbm.bandwidth"):
        figure("trainium2.hbm.bandwith")
    with pytest.raises(KeyError, match="near it there are a100, "):
        figure("trainium9")
    with pytest.raises(TypeError, match="'NeuronLink-v3', not a number"):
        figure("trainium2.link.version").to("GB/s")


def test_a_figure_made_of_an_unknown_one_is_unknown_too() -> None:
    formula = "2 * {trainium4.power}"
    assert derive(formula, "W") is None
    with pytest.raises(Unknown, match="needs trainium4.power, which nobody publishes"):
        _ = Figure("test", None, "W", "", "", "derived", DAY, formula=formula).number


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"value": 1, "source": "page"}, "chip.rate: .* missing required field `unit`"),
        ({"value": 1, "unit": "GHz"}, "chip.rate: its source is missing"),
        ({"value": 1, "unit": "GHz", "source": "pgae"}, "chip.rate: no source 'pgae'"),
        ({"value": 1, "unit": "GHz", "source": "page", "notes": ""}, "unknown field `notes`"),
        ({"formula": "2 * 3", "unit": "x"}, "names no figure in braces"),
        ({"value": 1, "unit": 2, "source": "page"}, "chip.rate: Expected `str`, got `int`"),
        ({"value": 1, "unit": "x", "source": "page", "date": "soon"}, r"at `\$.date`"),
    ],
)
def test_a_faulty_entry_is_named_with_its_fault(entry: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        _figure("chip.rate", entry, {"page": Source("https://example.org", DAY)})
    with pytest.raises(ValueError, match="chip.rate: an entry has a value or a formula"):
        [*_leaves({"chip": {"rate": {"valeu": 1, "unit": "GHz"}}})]


def test_no_text_of_the_data_is_cut_by_a_comma() -> None:
    """In a YAML mapping on one line a comma ends a text that has no quotes; what follows becomes a
    key without a value.
    """

    def keys_without_value(entry: object) -> list[str]:
        if isinstance(entry, list):
            return [result for item in entry for result in keys_without_value(item)]
        if not isinstance(entry, dict):
            return []
        cut = [str(key) for key, value in entry.items() if value is None and " " in str(key)]
        return cut + keys_without_value(list(entry.values()))

    cut = {path.name: keys_without_value(content(path.name)) for path in DATA.glob("*.yaml")}
    assert len(cut) > 10 and not any(cut.values()), cut


def test_no_figure_hides_as_a_number_in_a_formula() -> None:
    for item in EVERY:
        for number in re.findall(r"[\d.]+", re.sub(r"\{[^}]+\}", "", item.formula)):
            assert number in ("2", "4", "8"), f"{item.key}: {number} is typed in its formula"


def test_units_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2.9 TB/s cannot be given in TFLOPS"):
        figure("trainium2.hbm.bandwidth").to("TFLOPS")
    with pytest.raises(ValueError, match="cannot be given in cakes"):
        figure("trainium2.hbm.bandwidth").to("cakes")
    with pytest.raises(ValueError, match="the formula gives no TB/s"):
        derive("{trainium2.rate.bf16}", "TB/s")
    with pytest.raises(ValueError, match="cannot compute"):
        derive("{trainium2.rate.bf16} ** 2", "TFLOPS")
    with pytest.raises(ValueError, match="is no formula"):
        derive("{trainium2.rate.bf16} *", "TFLOPS")
    assert figure("trainium2.cores").to("cores") == figure("trainium2.cores").number


@given(st.floats(1e-3, 1e6), st.sampled_from(["TB/s", "GiB/s", "GB/s", "Gbps"]))
def test_conversion_is_undone_by_its_inverse(value: float, unit: str) -> None:
    there = units.convert(value, unit, "B/s")
    assert units.convert(there, "B/s", unit) == pytest.approx(value, rel=1e-12)


def test_a_figure_is_one_line() -> None:
    for item in EVERY:
        assert "\n" not in repr(item) and repr(item).startswith(f"{item.key} = ")
    text = repr(figure("trainium2.hbm.bandwidth"))
    assert "TB/s (primary, 2026-08-21); also" in text


def test_a_table_shows_conflicts_sources_and_the_age_of_old_prices() -> None:
    price, bandwidth = "trn2.48xlarge.price.capacity_block", "trainium2.hbm.bandwidth"
    shown = table(price, bandwidth, "trainium2.core_sum.", today=DAY)
    assert [item.key for item in shown.figures][:2] == [price, bandwidth]
    text, markdown = repr(shown), shown._repr_markdown_()
    for sentence in (text, markdown):
        assert "2026-07-22, 121 days old" in sentence and "but also" in sentence
        assert figure(bandwidth).text in sentence and figure(bandwidth).source in sentence
        assert "= trainium2.cores * trainium2.core_rate.bf16" in sentence
    assert f"[trainium2]({figure(bandwidth).source})" in markdown
    assert {line.count(" | ") for line in markdown.splitlines()} == {4}


def test_a_table_is_made_of_keys_prefixes_figures_and_collections() -> None:
    rates = figures("trainium2.rate.")
    wanted = tuple(rates.values())
    assert table("trainium2.rate.").figures == wanted == table(rates).figures
    assert table(*wanted).figures == wanted == table(rates.values()).figures
    with pytest.raises(KeyError, match="no figure 'trainium2.cake.'"):
        table("trainium2.cake.")


def test_a_price_says_its_age_the_day_after_its_limit() -> None:
    price = figure("trn2.48xlarge.price.capacity_block")
    limit = price.date + datetime.timedelta(PRICE_DAYS)
    assert age(price, limit) == ""
    assert age(price, limit + datetime.timedelta(1)) == f"{PRICE_DAYS + 1} days old"


def test_stale_facts_come_oldest_first_and_derived_ones_follow_from_others() -> None:
    old = stale(datetime.date(2027, 6, 1))
    assert [item.date for item in old] == sorted(item.date for item in old)
    assert {item.kind for item in old} == set(LIMITS) and all(item.over > 0 for item in old)
    keys = {item.key for item in old}
    assert "trn2.48xlarge.price.on_demand" in keys, "what was not published may be by now"
    assert "trn2.48xlarge.price_per_chip.capacity_block" not in keys
    assert stale(datetime.date(2015, 1, 1)) == ()


def test_what_came_of_a_look_up_is_said_of_sources_that_are_past_their_date(capsys) -> None:
    states = content("lookups.yaml")["states"]
    message_of = {last_try(item.source) for item in stale(datetime.date(2027, 6, 1))}
    assert {last_try(begin) for begin in states} <= message_of, "a state whose source is gone"
    assert last_try("https://www.example.org/") == ""
    assert "state of 2026-11-23: " in run(capsys, "--today", "2027-06-01")


def test_papers_do_not_age() -> None:
    papers = [item for item in facts().values() if "arxiv.org" in item.source]
    assert papers and not {age(paper, datetime.date(2099, 1, 1)) for paper in papers} - {""}


def test_statements_have_the_same_marks() -> None:
    for item in facts().values():
        assert item.text and item.source.startswith("https://") and item.status in STATUSES
        assert type(item.date) is datetime.date and not item.text.endswith("."), item.key
    shown = Sources(*facts())
    assert all(key in shown._repr_markdown_() and key in repr(shown) for key in facts())
    with pytest.raises(KeyError, match="no fact 'cake'.*torchneuron-status"):
        fact("cake")


def run(capsys: pytest.CaptureFixture, *arguments: str, code: int = 0) -> str:
    assert command.main([*arguments]) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_the_command_lists_what_to_look_up_again(capsys) -> None:
    text = run(capsys, "--today", "2026-11-20")
    assert "facts are older on 2026-11-20 than their limits (price 90 days, software 60" in text
    assert "121 days  price" in text and "trn2.48xlarge.price.capacity_block" in text
    assert "nothing is older on 2015-01-01" in run(capsys, "--today", "2015-01-01")


def test_the_command_shows_figures_and_claims(capsys) -> None:
    text = run(capsys, "--key", "p5.48xlarge.price.capacity")
    assert "p5.48xlarge.price.capacity_block" in text and "on 2026-01-31" in text
    assert "A-017  wrong  (performance)" in run(capsys, "--claims", "4.4 times")
    assert "tpu7x      2,307" in run(capsys, "--chips")


def test_the_command_names_what_it_does_not_find(capsys) -> None:
    assert "no figure begins with 'cake'; they begin with a100" in run(
        capsys, "--key", "cake", code=1
    )
    assert "no claim contains 'zzz'" in run(capsys, "--claims", "zzz", code=1)
    with pytest.raises(SystemExit):
        command.main(["--today", "yesterday"])
    assert "'yesterday' is not a date: write one such as" in capsys.readouterr().err


def test_a_reader_who_has_enough_of_the_list_gets_no_traceback() -> None:
    course = Path(__file__).parents[2] / "course.py"
    piped = f"'{sys.executable}' '{course}' --inside facts --key '' | head -1"
    done = subprocess.run(piped, shell=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("figure ") and done.stderr == ""


def test_the_readme_of_the_data_is_the_module_that_reads_it() -> None:
    for name in FILES:
        first = (DATA / name).read_text(encoding="utf-8").splitlines()[0]
        assert "utils/facts/records.py" in first
        assert Path(__file__).parents[2].joinpath("utils/facts/records.py").is_file()
