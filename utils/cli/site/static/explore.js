// Recorded explorables: each control chooses the frame that was recorded for its value.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".explore")) {
    const frames = [...place.querySelectorAll(".frames > div")];
    const controls = [...place.querySelectorAll(".controls label")].map((label) => {
      const options = JSON.parse(label.dataset.options), first = Number(label.dataset.first);
      const slider = label.dataset.kind === "slider";
      const input = document.createElement(slider ? "input" : "select");
      const shown = document.createElement("output");
      if (slider) Object.assign(input, { type: "range", min: 0, max: options.length - 1 });
      else input.append(...options.map((option, i) => new Option(option, i)));
      label.append(input, ...(slider ? [shown] : []));
      const set = (i) => {
        input.value = i;
        if (slider) input.setAttribute("aria-valuetext", options[i]);
        shown.value = options[i];
      };
      set(first);
      return { input, set, first };
    });
    for (const changed of controls) {
      changed.input.addEventListener("input", () => {
        changed.set(changed.input.value);
        if (place.dataset.mode === "one") {
          for (const other of controls) if (other !== changed) other.set(other.first);
        }
        const key = controls.map((control) => control.input.value).join(" ");
        for (const frame of frames) frame.hidden = frame.dataset.key !== key;
      });
    }
    place.querySelector(".controls").hidden = false;
  }
});
