"""The cost model as a page: what a visitor types, the link, the table taken along, and the words
and figures shown. The page in a real browser is in test_dashboard_browser.py.
"""

import csv
import dataclasses
import html
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from utils.cost.tco import InputError, compare, scenario, scenarios, tornado, warnings
from utils.course.catalog import ROOT
from utils.show.dashboard import export, form, results, server
from utils.show.dashboard.page import Page
from utils.show.report import build, estimates, report

LORA = "lora-13b"
DRAWN = "test_figures_are_described_in_words"


@pytest.fixture(autouse=True)
def _nobody_looks_at_the_pixels(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures are made and described throughout; one test draws them, which takes half a second
    for each.
    """

    def save(figure: object, out: io.BytesIO, **options: object) -> None:
        Image.new("RGB", (1, 1)).save(out, "png")

    if request.node.originalname != DRAWN:
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


every_scenario = pytest.mark.parametrize("name", list(scenarios()))


# --- what a visitor types


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("runs", "100", 100),
        ("runs", " 1,000 ", 1000),
        ("work", "1e9", 1e9),
        ("work", "2 000 000", 2e6),
        ("trainium.mfu", "35 %", 0.35),
        ("trainium.mfu", ".35", 0.35),
        ("queue", "2 days", 48),
        ("queue", "90 min", 1.5),
        ("storage", "1.5 TB", 1500),
        ("trainium.price", "48 USD/day", 2),
        ("gpu.discount", "-0", 0),
    ],
)
def test_a_value_may_have_separators_and_another_unit(path: str, text: str, value: float) -> None:
    assert form.parse(scenario(LORA), path, text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("runs", "-5", "runs = -5: allowed is 1 or more"),
        ("trainium.mfu", "1.2", "trainium.mfu = 1.2: allowed is more than 0 and at most 1"),
        ("trainium.mfu", "120 %", "trainium.mfu = 1.2: allowed is more than 0 and at most 1"),
        ("work", "many", "work = 'many': allowed is more than 0"),
        ("work", "", "work = '': allowed is more than 0"),
        ("work", "nan", "work = 'nan': allowed is more than 0"),
        ("work", "1e999", "work = inf: allowed is more than 0"),
        ("work", "1.2.3", "work = '1.2.3': allowed is more than 0"),
        ("work", "1e-308", "work = 1e-308: allowed is more than 0 (units), and no size beyond"),
        ("queue", "3 kg", "queue = '3 kg': allowed is 0 or more (h). Give a unit such as h"),
        ("trainium.price", "3 EUR/h", "trainium.price = '3 EUR/h': allowed is 0 or more"),
        ("runs", "5 __import__('os')", "runs = \"5 __import__('os')\": allowed is 1 or more"),
    ],
)
def test_bad_input_names_the_field_the_value_and_what_is_allowed(
    path: str, text: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        form.parse(scenario(LORA), path, text)
    assert str(caught.value).startswith(says)


@given(
    st.text("0123456789.,-+eE%/ hdkgGBUSDinaf_()", max_size=12), st.sampled_from(["queue", "runs"])
)
@settings(max_examples=200)
def test_whatever_is_typed_is_a_number_or_is_refused(text: str, path: str) -> None:
    try:
        value = form.parse(scenario(LORA), path, text)
    except InputError as error:
        assert error.field == path
    else:
        scenario(LORA).field(path).check(value)


def test_a_value_of_the_visitors_is_an_assumption() -> None:
    path = "trainium.price"
    before = scenario(LORA).inputs[path]
    after = scenario(LORA).with_values({path: before.value * 2}).inputs[path]
    assert before.status != "assumption" and before.source
    assert (after.status, after.source, after.date) == ("assumption", "", None)
    assert before.status in after.note
    same = scenario(LORA).with_values({path: before.value}).inputs[path]
    assert same == before


# --- the link


@every_scenario
def test_a_link_opens_what_it_was_made_from(name: str) -> None:
    base = scenario(name)
    changes = {p: item.value * 0.5 for p, item in base.inputs.items() if "weeks" in p}
    assert changes
    shown = base.with_values(changes)
    opened, shape, fault = form.open_link(form.link(shown, "uniform"))
    assert (shape, fault) == ("uniform", "")
    assert opened.inputs == shown.inputs and opened.name == name
    assert form.open_link(form.link(base)) == (base, "triangular", "")


def test_without_a_link_the_first_scenario_opens() -> None:
    first = next(iter(scenarios().values()))
    assert form.open_link("") == (first, "triangular", "")


@pytest.mark.parametrize(
    ("query", "opens", "says"),
    [
        ("scenario=nothing", "", "scenario = 'nothing'"),
        (f"scenario={LORA}&runs=-1", LORA, "runs = -1: allowed is 1 or more"),
        (f"scenario={LORA}&runs=abc", LORA, "runs = 'abc'"),
        (f"scenario={LORA}&rums=3", LORA, "one of runs"),
        ("runs=0&scenario=pretrain-70b", "pretrain-70b", "runs = 0"),
        ("template=lab", "", "input = 'template'"),
        (f"scenario={LORA}&runs=2&runs=3", LORA, "runs = given 2 times"),
        (f"scenario={LORA}&scenario=pretrain-70b", LORA, "scenario = given 2 times"),
        (f"scenario={LORA}&work=1e-308", LORA, "no size beyond 1e-15 and 1e+24"),
        ("scenario=pretrain-70b&gpu.billing_step=1e300", "pretrain-70b", "no size beyond"),
        (
            "scenario=pretrain-70b&draws=normal",
            "pretrain-70b",
            "draws = 'normal': allowed is one of",
        ),
        ("scenario=pretrain-70b&gpu.instance=p9", "pretrain-70b", "instance = 'p9'"),
        ("scenario=pretrain-70b&gpu.purchase=spot", "pretrain-70b", "price = none for p5.48xlarge"),
        (
            "scenario=chat-service&gpu.instance=p5.48xlarge",
            "chat-service",
            "on this instance alone",
        ),
        (f"{'a' * 5000}=1", "", "input = 'aaa"),
        ("scenario=<img src=x onerror=alert(1)>", "", "<img"),
    ],
)
def test_a_bad_link_says_what_is_wrong_and_opens_the_scenario(
    query: str, opens: str, says: str
) -> None:
    shown, shape, fault = form.open_link(query)
    assert shape == "triangular"
    assert shown == (scenario(opens) if opens else next(iter(scenarios().values())))
    assert says in fault and len(fault) < 400


def test_a_bad_link_is_shown_on_the_page_and_escaped() -> None:
    page = Page("scenario=<img src=x onerror=alert(1)>")
    assert "tco-error" in page.notice.value and "<img" not in page.notice.value


# --- the form


@every_scenario
def test_every_input_is_in_one_group_with_its_range_and_source(name: str) -> None:
    shown = scenario(name)
    sections = form.sections(shown)
    paths = [p for fields in sections.values() for field in fields.values() for p in field]
    assert sorted(paths) == sorted(shown.inputs) and len(set(paths)) == len(paths)
    for path in paths:
        detail, item = form.detail(shown, path), shown.inputs[path]
        assert f"allowed {shown.field(path).allowed.rpartition(' (')[0]}" in detail
        assert f"<b>{item.status}</b>" in detail
        assert ("range " in detail) == (item.low < item.high)
        assert item.status == "assumption" or "href='https://" in detail
        assert form.label(shown, path)


def test_numbers_in_boxes_come_back_as_they_were() -> None:
    for item in scenarios().values():
        for path, own in item.inputs.items():
            back = form.parse(item, path, form.number(own.value))
            assert back == pytest.approx(own.value, rel=1e-3)


# --- the table


@every_scenario
def test_the_table_has_inputs_costs_results_and_warnings(name: str) -> None:
    compared = compare(scenario(name), draws=100)
    result = warnings(compared.scenario, compared.a, compared.b)
    content = export.table(compared, result)
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    kinds = [row["kind"] for row in rows]
    assert kinds.count("input") == len(compared.scenario.inputs)
    assert kinds.count("warning") == len(result)
    for row in rows:
        if row["kind"] == "input":
            path = ".".join(filter(None, (row["option"], row["name"])))
            item = compared.scenario.inputs[path]
            assert (float(row["value"]), float(row["low"]), float(row["high"])) == (
                item.value, item.low, item.high)  # fmt: skip
            assert row["source"] or row["note"]
    for option, cost in compared.best.items():
        lines = [
            float(row["value"])
            for row in rows
            if row["kind"] == "cost" and row["option"] == option and row["name"] in cost.lines
        ]
        assert sum(lines) == pytest.approx(float(cost.total))
    (saving,) = (row for row in rows if row["name"] == "saving")
    assert float(saving["value"]) == compared.saving
    assert (float(saving["low"]), float(saving["high"])) == compared.interval()


def test_a_saved_file_is_a_link_of_its_own() -> None:
    made = export.saving_link("a'b.csv", "text/csv", b"1,2")
    assert "download='a&#39;b.csv'" in made and "href='data:text/csv;base64,MSwy'" in made


# --- results


@every_scenario
def test_the_headline_says_costs_saving_and_probability(name: str) -> None:
    compared = compare(scenario(name))
    shown = results.headline(compared)
    assert html.escape(build.answer(compared)) in shown
    assert shown.count("tco-value") == 4
    assert not re.search(r"\d{5}", re.sub(r"<[^>]*>", "", shown)), "a number without separators"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n != LORA)) for n in scenarios()]
)
def test_figures_are_described_in_words(name: str) -> None:
    compared = compare(scenario(name), draws=100)
    swings = tornado(compared.scenario)
    pictures = [
        *zip(
            *(estimates.pictures(compared, swings, narrow) for narrow in (False, True)), strict=True
        ),
        results.break_even_picture(compared, results.choices(compared.scenario, swings)[0][1]),
    ]
    for wide, narrow in pictures:
        made = results.figure(wide, narrow)
        (alt,) = re.findall("<img alt='([^']*)'", made)
        assert len(alt.split()) > 10 and wide.caption == narrow.caption
        # PNG, and its width in pixels: on a phone of 400 a figure has 350 to itself.
        widths = [int.from_bytes(item.png[16:20], "big") for item in (wide, narrow)]
        assert widths == [700, 350]


@every_scenario
def test_a_break_even_can_be_looked_for_along_every_input(name: str) -> None:
    compared = compare(scenario(name), draws=100)
    choices = results.choices(compared.scenario, tornado(compared.scenario))
    assert sorted(path for _, path in choices) == sorted(compared.scenario.inputs)
    assert len(dict(choices)) == len(choices), "two inputs have the same name"


@every_scenario
def test_warnings_and_what_to_find_out_are_those_of_the_report(name: str) -> None:
    compared = compare(scenario(name))
    result = warnings(compared.scenario, compared.a, compared.b)
    made = report(compared.scenario)
    for shown, points in (
        (results.warnings(result, compared), made.warnings),
        (results.to_find_out(compared), made.measure),
    ):
        assert re.findall("<li>(.*?)</li>", shown) == [html.escape(point) for point in points]
        assert not re.search(r"trainium|\bgpu\b|[a-z]_[a-z]", shown), "a name of the code"


def test_the_answer_names_the_chip_behind_an_mfu() -> None:
    words = "that of Trainium on Trainium1 and that of the GPU on H100."
    assert build.answer(compare(scenario("pretrain-70b"), draws=100)).endswith(words)
    assert "MFU" not in build.answer(compare(scenario("chat-service"), draws=100))


def test_what_a_scenario_says_is_escaped() -> None:
    base = scenario(LORA)
    first, option = next(iter(base.options.items()))
    evil = dataclasses.replace(option.context, instance="<script>", region="<script>")
    options = {**base.options, first: dataclasses.replace(option, context=evil)}
    compared = compare(dataclasses.replace(base, options=options), draws=100)
    result = warnings(compared.scenario, compared.a, compared.b)
    assert "<script>" not in results.headline(compared) + results.warnings(result, compared)


# --- the page


@pytest.fixture
def page() -> Page:
    return Page(f"scenario={LORA}")


def test_a_change_is_shown_in_the_headline_and_in_the_link(page: Page) -> None:
    before = page.headline.value
    page.boxes["trainium.weeks"].value = "1"
    assert page.headline.value != before
    assert f"?scenario={LORA}&amp;trainium.weeks=1" in page.link.value
    assert "tco-changed" in page.details["trainium.weeks"].value
    page.reset.click()
    assert page.headline.value == before and "trainium.weeks" not in page.link.value
    assert page.boxes["trainium.weeks"].value == form.number(
        scenario(LORA).inputs["trainium.weeks"].value
    )


def test_other_servers_take_their_price_and_peak_and_a_link_holds_them() -> None:
    page = Page("scenario=pretrain-70b")
    page.enter("gpu.mfu", "30 %")
    page.enter("gpu.price", "40")
    page.machines["gpu"].value = ("p6-b200.48xlarge", "on_demand")
    assert page.shown.inputs["gpu.price"].value == 113.9328
    assert page.shown.inputs["gpu.billing_step"].value == 0
    assert page.shown.inputs["gpu.mfu"].value == 0.3, "what was typed about other things stays"
    page.draws.value = "uniform"
    query = "scenario=pretrain-70b&gpu.instance=p6-b200.48xlarge&gpu.purchase=on_demand&gpu.mfu=0.3"
    assert f"?{html.escape(query + '&draws=uniform')}" in page.link.value
    other = Page(query + "&draws=uniform")
    assert other.shown == page.shown and other.headline.value == page.headline.value
    assert "p6-b200.48xlarge" in other.headline.value and "uniform draws" in other.headline.value
    other.reset.click()
    assert other.machines["gpu"].value == ("p5.48xlarge", "capacity_block")


def test_every_published_mfu_and_every_way_to_buy_is_on_the_page() -> None:
    page = Page("scenario=pretrain-70b")
    assert page.published.value.count("<tr>") == 1 + 11 + 10
    assert (
        page.published.value.count("Trainium1") == 11 and page.published.value.count("H100") == 10
    )
    assert "4 make Trainium cheaper and 7 the GPU" in page.published.value
    assert page.buying.value.count("<tr>") == 2 * (1 + 5)
    assert "Savings Plan, 3 years" in page.buying.value and "not public" in page.buying.value
    assert "one run takes 36.7 days" in page.buying.value.lower()
    assert len(page.machines["gpu"].options) == 15 and len(page.machines["trainium"].options) == 6
    page.choice.value = "chat-service"
    assert [item[1] for item in page.machines["gpu"].options] == [
        ("p5en.48xlarge", "on_demand"), ("p5en.48xlarge", "capacity_block")]  # fmt: skip
    assert "<table" not in page.published.value


def test_bad_input_keeps_what_was_there(page: Page) -> None:
    page.boxes["runs"].value = "100"
    shown = page.headline.value, page.link.value, page.shown
    page.boxes["runs"].value = "<b>0</b>"
    assert (page.headline.value, page.link.value, page.shown) == shown
    assert page.boxes["runs"].value == "100"
    assert "role='alert'" in page.details["runs"].value
    assert "runs = &#39;&lt;b&gt;0&lt;/b&gt;&#39;" in page.details["runs"].value
    page.boxes["runs"].value = "101"
    assert "role='alert'" not in page.details["runs"].value


def test_what_cannot_be_computed_keeps_what_was_there(page: Page) -> None:
    before = page.shown
    assert "never ends" in page.enter("failures", "1e9")
    assert page.shown is before


def failures_beyond_the_draws() -> float:
    """Failures a year at which the best guess can be computed, but not every draw."""
    low, high = 1.0, 1e6
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        opens = not form.open_link(f"scenario=pretrain-70b&failures={middle}")[2]
        low, high = (middle, high) if opens else (low, middle)
    return low


def test_a_link_that_opens_but_has_draws_that_never_end_is_refused() -> None:
    page = Page(f"scenario=pretrain-70b&failures={failures_beyond_the_draws():g}")
    assert page.shown == scenario("pretrain-70b")
    assert "never ends" in page.notice.value


def test_a_break_even_that_cannot_be_looked_for_says_why() -> None:
    page = Page("scenario=pretrain-70b")
    assert page.enter("failures", "300") == ""
    page.along.value = "failures"
    assert "cannot be looked for" in page.figures["even"].value
    page.along.value = "runs"
    assert "<img" in page.figures["even"].value


def test_widgets_of_a_scenario_that_was_left_are_closed(page: Page) -> None:
    left = list(page.boxes.values())
    page.choice.value = "pretrain-70b"
    assert all(box.comm is None for box in left)
    assert not any(box.comm is None for box in page.boxes.values())


def test_another_scenario_has_other_boxes(page: Page) -> None:
    for name in scenarios():
        page.choice.value = name
        assert page.shown == scenario(name)
        assert set(page.boxes) == set(page.shown.inputs)
        assert f"scenario={name}" in page.link.value
        assert page.along.value in page.shown.inputs


def test_files_are_saved_twice_if_asked_twice(page: Page) -> None:
    seen: list[str] = []
    page.file.observe(lambda change: seen.append(change["new"]), "value")
    page.csv.click()
    page.csv.click()
    assert [bool(item) for item in seen] == [True, False, True]
    assert f"download='cost-{LORA}.csv'" in seen[0]


# --- how it is served


def test_voila_knows_every_setting() -> None:
    """A misspelt one would be ignored silently."""
    from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
    from voila.app import Voila
    from voila.configuration import VoilaConfiguration

    classes = {item.__name__: item for item in (Voila, VoilaConfiguration, MappingKernelManager)}
    settings_given = server.settings(1)
    assert set(settings_given) == set(classes)
    for name, values in settings_given.items():
        assert set(values) <= set(classes[name].class_traits())


def test_the_page_is_this_machines_only_unless_voila_is_told_otherwise() -> None:
    assert server.settings(1)["Voila"]["ip"] == "localhost"
    assert server.settings(1, elsewhere=True)["Voila"]["tornado_settings"]["allow_remote_access"]
    assert server.settings(1)["Voila"]["tornado_settings"]["allow_remote_access"] is False


@pytest.mark.parametrize("port", [99999, 0])
def test_a_port_that_there_is_not_is_named(port: int) -> None:
    command = [sys.executable, "course.py", "--inside", "tco", "--no-browser", f"--port={port}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"course.py: no port {port}: give one from 1 to 65535")


def test_a_home_that_cannot_be_written_is_replaced_for_the_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with server._writable_home():
        assert Path.home() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    with server._writable_home():
        assert os.access(Path.home(), os.W_OK) and Path.home().parent != tmp_path
    assert not Path.home().exists()


def test_a_port_that_is_taken_is_left_alone() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert server.in_use(port) and server.free_port(port) > port
        command = [sys.executable, "course.py", "--inside", "tco", "--no-browser", f"--port={port}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"course.py: port {port} is in use: give another one")


def test_the_template_names_no_other_host_and_runs_no_script_of_the_page() -> None:
    files = [path for path in server.TEMPLATES.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://|//[\w-]+\.\w", text.replace("//# ", "")), path
        scripts = re.findall(r"<script(?![^>]*(?:src=|json\"))[^>]*>", text)
        assert scripts == [] or path.name.endswith(".js"), path
    assert "script-src 'self';" in server.POLICY


def test_the_notebook_shows_the_page_and_holds_no_output() -> None:
    (cell,) = json.loads(server.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert "".join(cell["source"]).endswith("show()") and cell["outputs"] == []


def test_the_page_needs_no_torch() -> None:
    code = (
        "import sys; from utils.show.dashboard.page import Page; Page('');"
        "print(sorted({'torch', 'torch_xla', 'pandas', 'networkx'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_readme_names_the_command() -> None:
    assert "| `tco` |" in Path(ROOT / "utils/cli/site/guide/commands.md").read_text(
        encoding="utf-8"
    )
