
for (const table of document.querySelectorAll("table.sortable")) {
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const rows = [...table.tBodies[0].rows].sort((one, other) => {
        const a = key(one), b = key(other);
        const order = isNaN(a - b) ? a.localeCompare(b) : a - b;
        return up ? order : -order;
      });
      for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    });
  }
}
