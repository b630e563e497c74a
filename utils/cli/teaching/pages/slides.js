// One slide at a time; a second window with notes follows this one, or leads it.
const sections = [...document.querySelectorAll("section")];
const speaker = location.hash.startsWith("#notes");
let now = 0, other = speaker ? opener : null;
function show(place, tell = true) {
  now = Math.max(0, Math.min(sections.length - 1, place));
  sections.forEach((section, i) => section.classList.toggle("now", i === now));
  if (speaker) sections[now].querySelector(".notes").open = true;
  else history.replaceState(null, "", `#${now + 1}`);
  scrollTo(0, 0);
  if (tell && other) other.postMessage({ slide: now }, "*");
}
const toggle = (name) => {
  const part = sections[now].querySelector(name);
  if (part) part.open = !part.open;
};
addEventListener("message", (event) => {
  if (event.source === other && Number.isInteger(event.data.slide)) show(event.data.slide, false);
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
  if (event.key in moves) { event.preventDefault(); show(now + moves[event.key]); }
  if (event.key === "r") toggle(".result");
  if (event.key === "n") toggle(".notes");
  if (event.key === "s" && !speaker) other = open(`${location.href.split("#")[0]}#notes${now + 1}`, "notes", "width=900,height=900");
});
// On paper nothing is closed.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
document.body.classList.add("shown");
if (speaker) document.body.classList.add("speaker");
show((parseInt(location.hash.replace(/\D/g, "")) || 1) - 1, false);
