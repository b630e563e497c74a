// What widgets lack: see utils/show/dashboard/page.py. Everything here adds to what is there; results
// come from the kernel alone.
"use strict";

// Voila calls these; our page shows that it loads in its own way.
window.voila_heartbeat = () => {};
window.display_cells = () => {};

// A connection that stays lost is reported: what is typed would have no effect.
const FOUND_AGAIN_MS = 3000;
let connections = 0;
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    let open = false;
    this.addEventListener("open", () => {
      open = true;
      connections += 1;
      document.getElementById("tco-lost")?.remove();
    });
    this.addEventListener("close", () => {
      if (!open) return;
      connections -= 1;
      setTimeout(sayLost, FOUND_AGAIN_MS);
    });
  }
};

function sayLost() {
  if (connections > 0 || document.getElementById("tco-lost")) return;
  const words = document.createElement("p");
  words.id = "tco-lost";
  words.setAttribute("role", "alert");
  words.textContent = "The calculation no longer answers. Reload the page: its address holds your" +
    " inputs. If that fails, start the page again where it was started.";
  document.body.prepend(words);
}

// Voila says goodbye in beforeunload, which phones and pages that are closed early do not have: we
// say it, once.
window.addEventListener("beforeunload", (event) => event.stopImmediatePropagation());
window.addEventListener("pagehide", (event) => {
  const config = document.getElementById("jupyter-config-data");
  if (event.persisted || !config) return;
  const { baseUrl, kernelId } = JSON.parse(config.textContent);
  navigator.sendBeacon(`${baseUrl}voila/api/shutdown/${encodeURIComponent(kernelId)}`);
});

const narrow = window.matchMedia("(max-width: 800px)");

// The link in its field and in the address bar, so that a reload keeps the inputs.
function completeLink(field) {
  const query = field.value;
  if (!query.startsWith("?")) return;
  field.value = location.origin + location.pathname + query;
  if (location.search !== query) history.replaceState(null, "", query);
}

// Chromium saves a link's data only if the page follows it; a blob has no limit of size.
async function save(link) {
  link.removeAttribute("data-save");
  const content = await (await dataOf(link.href)).blob();
  const copy = document.createElement("a");
  copy.href = URL.createObjectURL(content);
  copy.download = link.download;
  copy.click();
  setTimeout(() => URL.revokeObjectURL(copy.href), 10_000);
}

function dataOf(address) {
  const [head, data] = address.slice("data:".length).split(",");
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  return new Response(bytes, { headers: { "Content-Type": head.split(";")[0] } });
}

// A screen reader says the words under a box together with its label.
function describe(cell) {
  const box = cell.querySelector("input");
  const words = cell.querySelector(".tco-detail .widget-html-content");
  if (!box || !words) return;
  words.id = `${box.id}-words`;
  box.setAttribute("aria-describedby", words.id);
  // Over the boxes of both options stands one title.
  let title = cell;
  while (title && !title.classList.contains("tco-field")) title = title.previousElementSibling;
  const label = cell.querySelector("label");
  if (title && label) {
    title.id ||= `${box.id}-title`;
    label.id ||= `${box.id}-label`;
    box.setAttribute("aria-labelledby", `${title.id} ${label.id}`);
  }
  box.setAttribute("aria-invalid", String(Boolean(words.querySelector(".tco-error"))));
  box.setAttribute("autocomplete", "off");
  box.setAttribute("inputmode", "decimal");
}

function close(group, closed) {
  group.classList.toggle("tco-closed", closed);
  group.querySelector("button").setAttribute("aria-expanded", String(!closed));
}

function refresh() {
  if (document.querySelector(".tco-headline h2, .tco-fault")) document.getElementById("loading")?.remove();
  const results = document.querySelector(".tco-results");
  if (results) results.id = "results";
  document.querySelectorAll("#tco-link").forEach(completeLink);
  document.querySelectorAll("a[data-save]").forEach(save);
  document.querySelectorAll(".tco-cell").forEach(describe);
  for (const group of document.querySelectorAll(".tco-group:not([data-seen])")) {
    if (!group.querySelector("button")) continue;
    group.dataset.seen = "";
    close(group, narrow.matches);
  }
  for (const status of document.querySelectorAll(".tco-headline:not([role]), .tco-notice:not([role]), .tco-file:not([role])")) {
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  const group = button?.closest(".tco-group-title") && button.closest(".tco-group");
  if (group) close(group, !group.classList.contains("tco-closed"));
  if (button?.dataset.copy) {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  }
});

let waiting = false;
new MutationObserver(() => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    refresh();
  });
}).observe(document, { childList: true, subtree: true });
