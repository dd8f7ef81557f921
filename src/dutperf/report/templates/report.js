"use strict";
(async () => {
{% include "charts.js" %}
{% include "numbers.js" %}

// --- the contents: open beside the page where there is room

const contents = document.getElementById("contents");
const wide = matchMedia("(min-width: 900px)");
const fold = () => { contents.open = wide.matches; };
wide.addEventListener("change", fold);
contents.addEventListener("click", (event) => {
  if (event.target.closest("a")) fold();
});
fold();

// --- one of many: the panel that was chosen

const choices = [...document.querySelectorAll("select[data-choice]")];
const choose = (select) => {
  for (const { value } of select.options) {
    document.getElementById(value).hidden = value !== select.value;
  }
};
choices.forEach(choose);

// What an address points to may be folded away, or not chosen.
const reveal = () => {
  const target = document.querySelector(":target");
  const panel = target?.closest("[hidden]");
  if (!panel) return;
  for (const select of document.querySelectorAll(".choice select")) {
    if (![...select.options].some(({ value }) => value === panel.id)) continue;
    select.value = panel.id;
    select.dispatchEvent(new Event("change"));
  }
  target.scrollIntoView();
};

// What is wider than its place is scrolled, by the keyboard, too.
const scrollable = () => {
  for (const place of document.querySelectorAll(".wide")) {
    if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  }
};
addEventListener("resize", scrollable);
addEventListener("toggle", scrollable, true);
scrollable();

// What is unfolded at first is not on paper, unless it was by the reader.
addEventListener("click", (event) => {
  event.target.closest("summary")?.parentElement.classList.remove("unfolded");
});

let found;
try {
  run(await unpacked("plotly"));
  found = JSON.parse(await unpacked("figures"));
} catch {
  document.getElementById("no-charts").hidden = false;
  return;
}
const draw = drawing(found);
const charts = Object.keys(found.figures).map((id) => document.getElementById(id));
const near = new Set();
const watcher = new IntersectionObserver((entries) => {
  const come = entries.filter((entry) => entry.isIntersecting).map(({ target }) => target);
  come.forEach((place) => near.add(place));
  come.forEach((place) => watcher.unobserve(place));
  draw(come);
}, { rootMargin: "800px" });

const drawForScreen = () => {
  root.removeAttribute("data-print");
  draw(near);
};
const drawForPaper = () => {
  root.setAttribute("data-print", "");
  draw(charts, printWidth);
};

for (const select of choices) select.addEventListener("change", () => choose(select));
for (const details of document.querySelectorAll("details.timing")) {
  const select = details.querySelector("select");
  select?.addEventListener("change", () => {
    for (const trial of details.querySelectorAll(".trial")) {
      trial.hidden = trial.id !== select.value;
    }
  });
}
for (const place of charts) {
  steps(place, found.figures[place.id]);
  numbersBeside(place, found.figures[place.id]);
  watcher.observe(place);
}
// What is not near is drawn before anybody comes there, one after another; what is folded
// waits until somebody unfolds it.
const drawNext = () => {
  const place = charts.find((one) => !near.has(one) && visible(one));
  if (!place) return;
  near.add(place);
  watcher.unobserve(place);
  draw([place]);
  setTimeout(drawNext);
};
setTimeout(drawNext);
reveal();
addEventListener("hashchange", reveal);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawForScreen);
addEventListener("beforeprint", drawForPaper);
addEventListener("afterprint", drawForScreen);
})();
