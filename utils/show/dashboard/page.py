"""The page: inputs on the left, results on the right, made of core widgets.

The page's script (`page.js`) adds what widgets lack: the link in the address bar, files that are
saved, groups that close, descriptions bound to their boxes.
"""

import html
from typing import Any

from utils.cost.tco.comparison import warnings
from utils.cost.tco.fields import InputError
from utils.cost.tco.scenario import Scenario, original, scenarios
from utils.cost.tco.uncertainty import compare, tornado
from utils.show.dashboard import export, form, results
from utils.show.dashboard.parts import part
from utils.show.report.estimates import pictures
from utils.show.report.wording import label

INTRODUCTION = (
    "<h1>What would it cost?</h1><p>The same work on Trainium and on a GPU: what it costs, how sure"
    " that is, and what would change the answer. Every input has a source or is called an"
    " assumption; change any of them. Everything is computed on this machine.</p>"
)


class Page:
    """State and widgets of one visitor's page.

    query: of the link that was opened. `shown` is the scenario with the visitor's values, always
    one that could be computed; `widget` is what a notebook displays.
    """

    def __init__(self, query: str = "") -> None:
        import ipywidgets  # late: slow to load

        self._widgets = ipywidgets
        shown, self.shape, fault = form.open_link(query)
        self.boxes: dict[str, Any] = {}
        self.details: dict[str, Any] = {}
        self.machines: dict[str, Any] = {}
        self._quiet, self._built = False, ""
        # Our style sheet lays out; widgets would otherwise have hundreds of their own layouts.
        self._layout = ipywidgets.Layout()
        styles = ipywidgets.widgets.widget_string
        self._style = {"text": styles.TextStyle(), "html": styles.HTMLStyle()}

        options = [(item.title, name) for name, item in scenarios().items()]
        self.choice = ipywidgets.Dropdown(options=options, value=shown.name, description="Scenario")
        self.draws = ipywidgets.Dropdown(
            options=[("triangular: most often near the best guess", "triangular"),
                     ("uniform: anywhere in the range alike", "uniform")],
            value=self.shape, description="Draws from the ranges",
        )  # fmt: skip
        self.choices = self._box("machines")
        self.about, self.notice = self._html("about"), self._html("notice")
        self.reset = self._button("Back to the scenario's own values", "quiet")
        self.inputs = self._box("groups")
        self.headline, self.warnings = self._html("headline"), self._html("warnings")
        self.to_find_out = self._html("warnings")
        self.published, self.buying = self._html("published"), self._html("warnings")
        self.link, self.file = self._html("link"), self._html("file")
        self.csv = self._button("Save as CSV", "save")
        self.pdf = self._button("Save as PDF", "save")
        self.figures = {name: self._html("figure") for name in ("waterfall", "tornado", "even")}
        self.along = ipywidgets.Dropdown(description="as this input changes", options=[("", "")])

        left = self._box(
            "inputs", self.choice, self.about, self.choices, self.draws, self.notice, self.reset,
            self.inputs,
        )  # fmt: skip
        taken = self._box("taken", self.link, self.csv, self.pdf, self.file)
        drawn = self.figures
        right = self._box(
            "results",
            self.headline,
            taken,
            self.published,
            self.buying,
            self.to_find_out,
            self.warnings,
            self._with_title("Where the money goes", drawn["waterfall"]),
            self._with_title("What matters most", drawn["tornado"]),
            self._with_title("Where both cost the same", self.along, drawn["even"]),
        )
        head = self._html("head", INTRODUCTION)
        self.widget = self._box("page", head, self._box("columns", left, right))

        try:
            self._open(shown)
        except InputError as error:
            # At its best guesses it could be computed, but not everywhere in its ranges.
            fault = form.refusal(error)
            self._open(scenarios()[shown.name])
        self.notice.value = part("alert", fault) if fault else ""
        self.choice.observe(lambda change: self._choose(change["new"]), "value")
        self.draws.observe(lambda change: self._draw_from(change["new"]), "value")
        self.along.observe(lambda change: self._draw_break_even(), "value")
        self.reset.on_click(lambda _: self._open(scenarios()[self.shown.name]))
        self.csv.on_click(lambda _: self._save("csv"))
        self.pdf.on_click(lambda _: self._save("pdf"))

    def enter(self, path: str, text: str) -> str:
        """Take what was typed for an input; returns what is wrong with it, and then keeps all."""
        try:
            changes = form.changes_of(self.shown) | {path: form.parse(self.shown, path, text)}
            self._show(original(self.shown).with_values(changes))
        except InputError as error:
            self._fill(path, str(error))
            return str(error)
        self._fill(path)
        return ""

    def _open(self, shown: Scenario) -> None:
        """Another scenario, or the same with other values. Raises InputError."""
        self.notice.value = ""
        self._show(shown)
        if self._built != shown.name:
            self._build(shown)
        self._quiet = True
        for option, menu in self.machines.items():
            context = shown.options[option].context
            menu.value = (context.instance, context.purchase)
        self._quiet = False
        for path in shown.inputs:
            self._fill(path)

    def _build(self, shown: Scenario) -> None:
        """New boxes for a scenario; the old ones are given back to the browser and to Python."""
        old, self._built = self.inputs.children, shown.name
        self.boxes, self.details = {}, {}
        self.about.value = f"<p>{html.escape(shown.about)}</p>"
        self._quiet = True
        self.choice.value = shown.name
        self._quiet = False
        self.inputs.children = [
            self._group(title, fields) for title, fields in form.sections(shown).items()
        ]
        old = (*old, *self.choices.children)
        self.machines = {option: self._machine(shown, option) for option in shown.options}
        self.choices.children = list(self.machines.values())
        for item in old:
            _close(item)

    def _machine(self, shown: Scenario, option: str) -> Any:
        """The menu of an option's instances and ways to buy them."""
        menu = self._widgets.Dropdown(
            options=form.machines(shown, option), description=f"Servers of {label(option, True)}"
        )
        menu.observe(lambda change: self._buy(option, change["new"]), "value")
        return menu

    def _buy(self, option: str, offer: tuple[str, str]) -> None:
        """Other servers, with the changes of the visitor that are not about them."""
        if self._quiet:
            return
        kept = {
            path: value
            for path, value in form.changes_of(self.shown).items()
            if path not in (f"{option}.price", f"{option}.peak", f"{option}.billing_step")
        }
        self._open(original(self.shown).with_instance(option, *offer).with_values(kept))

    def _draw_from(self, shape: str) -> None:
        self.shape = shape
        self._show(self.shown)

    def _group(self, title: str, fields: dict[Any, list[str]]) -> Any:
        cells = [self._html("group-title", f"<h2><button type='button'>{title}</button></h2>")]
        first = next(iter(self.shown.options))
        for field, paths in fields.items():
            cells.append(self._html("field", form.title(field)))
            for path in paths:
                box = self._widgets.Text(
                    description=form.label(self.shown, path),
                    continuous_update=False,
                    layout=self._layout,
                    style=self._style["text"],
                )
                box.observe(lambda change, path=path: self._on_input(path, change["new"]), "value")
                self.boxes[path], self.details[path] = box, self._html("detail")
                side = "shared" if "." not in path else "ab"[not path.startswith(f"{first}.")]
                cells.append(self._box(f"cell tco-{side}", box, self.details[path]))
        return self._box("group", *cells)

    def _choose(self, name: str) -> None:
        if not self._quiet:
            self._open(scenarios()[name])

    def _on_input(self, path: str, text: str) -> None:
        if not self._quiet:
            self.enter(path, text)

    def _fill(self, path: str, fault: str = "") -> None:
        """The box and the words below it, as the scenario has them."""
        self._quiet = True
        self.boxes[path].value = form.number(self.shown.inputs[path].value)
        self._quiet = False
        self.details[path].value = (part("alert", fault) if fault else "") + form.detail(
            self.shown, path
        )

    def _show(self, shown: Scenario) -> None:
        """Compute, then show; if it cannot be computed, nothing changes. Raises InputError."""
        compared = compare(shown, shape=self.shape)
        swings = tornado(shown)
        result = warnings(shown, compared.a, compared.b)
        self.shown, self.compared, self.warned = shown, compared, result
        self.headline.value = results.headline(compared)
        self.link.value = part("link", form.link(shown, self.shape))
        self.published.value = results.mfu_table(compared)
        self.buying.value = results.buying(compared)
        self.to_find_out.value = results.to_find_out(compared)
        self.warnings.value = results.warnings(result, compared)
        both = zip(pictures(compared, swings), pictures(compared, swings, True), strict=True)
        fall, *others = both
        self._draw("waterfall", *fall)
        self.figures["tornado"].value = "<p>No input has a range: nothing moves the saving.</p>"
        for picture in others:
            self._draw("tornado", *picture)
        self._offer(results.choices(shown, swings))
        self._draw_break_even()

    def _offer(self, choices: list[tuple[str, str]]) -> None:
        """The list of inputs to look for a break-even along; the chosen one stays chosen."""
        self._quiet = True
        chosen = self.along.value
        paths = {path for _, path in choices}
        if paths != {path for _, path in self.along.options}:
            self.along.options = choices
            self.along.value = chosen if chosen in paths else choices[0][1]
        self._quiet = False

    def _draw_break_even(self) -> None:
        if self._quiet:
            return
        try:
            self._draw("even", *results.break_even_picture(self.compared, self.along.value))
        except InputError as error:
            # It is looked for far outside of the range too, where some runs never end.
            words = html.escape(f"It cannot be looked for: {error}.")
            self.figures["even"].value = f"<p>{words}</p>"

    def _draw(self, name: str, wide: Any, narrow: Any) -> None:
        self.figures[name].value = results.figure(wide, narrow)

    def _save(self, kind: str) -> None:
        # Emptied first, because the page's script follows a link that is new: twice the same, too.
        self.file.value = ""
        if kind == "csv":
            content, media = export.table(self.compared, self.warned), "text/csv"
        else:
            from utils.show.report import report, to_pdf  # late: fpdf2 is slow to load

            self.file.value = "<p>Writing the report; this takes some seconds.</p>"
            content, media = to_pdf(report(self.shown)), "application/pdf"
        name = f"cost-{self.shown.name}.{kind}"
        self.file.value = export.saving_link(name, media, content)

    def _with_title(self, words: str, *children: Any) -> Any:
        return self._box("drawn", self._html("title", f"<h2>{words}</h2>"), *children)

    def _html(self, name: str, value: str = "") -> Any:
        made = self._widgets.HTML(value, layout=self._layout, style=self._style["html"])
        return self._with_class(made, name)

    def _box(self, name: str, *children: Any) -> Any:
        return self._with_class(self._widgets.Box(children, layout=self._layout), name)

    def _button(self, words: str, name: str) -> Any:
        return self._with_class(self._widgets.Button(description=words), name)

    def _with_class(self, widget: Any, names: str) -> Any:
        for name in names.split():
            widget.add_class(name if name.startswith("tco-") else f"tco-{name}")
        return widget


def _close(widget: Any) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()
