// A box above every long table that keeps the rows which contain all words that are typed.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < 30) continue;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const label = document.createElement("label");
    label.className = "filter";
    label.append("Show rows that contain ");
    const box = document.createElement("input");
    box.type = "search";
    label.append(box);
    const count = document.createElement("output");
    const show = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        if (!row.hidden) shown += 1;
      });
      count.textContent = ` ${shown} of ${rows.length} rows`;
    };
    box.addEventListener("input", show);
    label.append(count);
    (table.closest(".table-wrapper") || table).before(label);
    show();
  }
});
