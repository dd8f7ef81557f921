// What the page carries is compressed; a browser unpacks it by itself.
const unpacked = async (id) => {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};
const run = (code) => {
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
};

const root = document.documentElement;
const printWidth = 670;
const printHeight = 0.75;
const printLetters = 10;

// One palette for page and charts: var(--name) becomes what the style sheet says.
const resolved = (value, style) => {
  if (typeof value === "string") {
    return value.replace(/^var\((--[a-z0-9-]+)\)$/, (_, name) =>
      style.getPropertyValue(name).trim());
  }
  if (Array.isArray(value)) return value.map((item) => resolved(item, style));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, resolved(item, style)]));
};

const settings = {
  responsive: true,
  displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

// A legend does not break its lines, so a name that is wider than the screen is broken.
const broken = (name, width) => {
  const most = Math.floor((width - 70) / 7.6);
  const letters = name.match(/&#?\w{1,8};|./gsu) || [];
  const lines = [];
  while (letters.length > most) {
    const space = letters.lastIndexOf(" ", most);
    lines.push(letters.splice(0, space > 0 ? space : most).join(""));
    if (letters[0] === " ") letters.shift();
  }
  return [...lines, letters.join("")].join("<br>");
};

// Plotly leaves room for the legend only as high as it thinks it is; on a narrow
// screen the legend has more rows, so the chart gets higher with it.
const fitted = (width, layout, data) => {
  if (!layout.showlegend || width >= 560) return;
  for (const trace of data) if (trace.name) trace.name = broken(trace.name, width);
  const rows = data.map(({ name }) => (name || "").split("<br>").length);
  layout.height += 24 * rows.reduce((sum, lines) => sum + lines, 0);
};

// What is folded away is drawn when somebody looks at it: a page may hold the charts of
// hundreds of trials.
const visible = (place) => !place.closest("[hidden], details:not([open])");

// Labels that were chosen for a wide screen run into each other on a narrow one: of each
// axis every second one is left, or every third.
const thinned = (place) => {
  if (!place.clientWidth) return;
  for (const axis of ["xtick", "x2tick"]) {
    const labels = [...place.querySelectorAll(`.${axis} text`)];
    for (const label of labels) label.style.visibility = "";
    const boxes = labels.map((label) => label.getBoundingClientRect());
    const apart = (step) => boxes.every((box, at) =>
      at % step || at < step || box.left >= boxes[at - step].right + 4);
    let step = 1;
    while (step < labels.length && !apart(step)) ++step;
    for (const [at, label] of labels.entries()) {
      if (at % step) label.style.visibility = "hidden";
    }
  }
};
const isThinned = new WeakSet();

const drawing = ({ figures, template }) => (places, pageWidth) => {
  const style = getComputedStyle(root);
  for (const place of places) {
    if (!visible(place)) continue;
    const figure = figures[place.id];
    const pair = place.closest(".pair");
    const width = pageWidth && pair && pair.children.length > 1
      ? (pageWidth - 16) / 2 : pageWidth;
    const { data, layout } = resolved(figure, style);
    layout.template = resolved(template, style);
    fitted(width || place.clientWidth, layout, data);
    if (pageWidth) {
      layout.height = Math.round(layout.height * printHeight);
      layout.font = { size: printLetters };
    }
    layout.width = width;
    layout.autosize = !width;
    Plotly.react(place, data, layout, settings).then(() => {
      if (!isThinned.has(place)) place.on("plotly_afterplot", () => thinned(place));
      isThinned.add(place);
      thinned(place);
    });
  }
};
