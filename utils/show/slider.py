"""A slider and a list of the browser's own, with labels that a screen reader reads.

The slider of ipywidgets has a handle without a name, and the arrow keys of its list are taken by
JupyterLab, which moves between cells with them; no setting changes either.
"""

import anywidget
import traitlets

SCRIPT = """
function render({ model, el }) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  const words = document.createElement("span");
  words.textContent = model.get("description");
  words.style.flex = "0 1 18em";  // so that tracks below each other begin in one line
  label.append(words, input, shown);
  label.style.cssText = "display:flex;gap:0.6em;align-items:center;max-width:44em";
  label.style.color = "var(--jp-ui-font-color1, inherit)";
  input.type = "range";
  input.style.flex = "1";
  // Arrow keys move the handle, and not between the cells of JupyterLab.
  input.addEventListener("keydown", event => event.stopPropagation());
  input.min = model.get("min");
  input.max = model.get("max");
  const follow = () => { input.value = shown.value = model.get("value"); };
  follow();
  // The number follows the handle at once; the kernel hears of it when the handle rests.
  input.addEventListener("input", () => { shown.value = input.value; });
  input.addEventListener("change", () => {
    model.set("value", Number(input.value));
    model.save_changes();
  });
  model.on("change:value", follow);
  el.append(label);
}
export default { render };
"""


LIST = """
function render({ model, el }) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  const words = document.createElement("span");
  words.textContent = model.get("description");
  words.style.flex = "0 1 18em";
  label.append(words, select);
  label.style.cssText = "display:flex;gap:0.6em;align-items:center;max-width:44em";
  label.style.color = "var(--jp-ui-font-color1, inherit)";
  select.style.minWidth = "20em";
  select.append(...model.get("options").map((option, place) => new Option(option, place)));
  // Arrow keys and letters choose, and are no commands of JupyterLab.
  select.addEventListener("keydown", event => event.stopPropagation());
  const follow = () => { select.value = model.get("index"); };
  follow();
  select.addEventListener("change", () => {
    model.set("index", Number(select.value));
    model.save_changes();
  });
  model.on("change:index", follow);
  el.append(label);
}
export default { render };
"""


class Choice(anywidget.AnyWidget):
    """One of a list of texts, by its place; `description` is its label."""

    _esm = LIST
    description = traitlets.Unicode().tag(sync=True)
    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)


class Slider(anywidget.AnyWidget):
    """A whole number between `min` and `max`; `description` is its label, with the unit."""

    _esm = SCRIPT
    description = traitlets.Unicode().tag(sync=True)
    min = traitlets.Int(0).tag(sync=True)
    max = traitlets.Int(100).tag(sync=True)
    value = traitlets.Int(0).tag(sync=True)
