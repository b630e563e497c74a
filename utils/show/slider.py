"""A slider that a screen reader can name: the browser's own, with a label and its value beside it.

The slider of ipywidgets has a handle without a name, which no setting mends.
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


class Slider(anywidget.AnyWidget):
    """A whole number between `min` and `max`; `description` is its label, with the unit."""

    _esm = SCRIPT
    description = traitlets.Unicode().tag(sync=True)
    min = traitlets.Int(0).tag(sync=True)
    max = traitlets.Int(100).tag(sync=True)
    value = traitlets.Int(0).tag(sync=True)
