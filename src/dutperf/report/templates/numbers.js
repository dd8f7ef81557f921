// The numbers of a chart: as a table, as CSV, and point by point by the keyboard.

// Texts of a figure are markup for plotly; a document of its own runs and loads nothing.
const plain = (value) => {
  const text = String(value ?? "");
  if (!/[<&]/.test(text)) return text;
  return new DOMParser().parseFromString(text.replace(/<br>/g, "; "), "text/html")
    .body.textContent;
};

// What can be pointed at: lines that only help to look have no numbers of their own.
const series = (figure) => figure.data.flatMap((trace, curve) => {
  if (trace.hoverinfo === "skip") return [];
  const { layout } = figure;
  const yaxis = layout[(trace.yaxis ?? "y").replace("y", "yaxis")];
  const told = trace.meta ?? {};
  const name = plain(told.name ?? trace.name);
  const x = plain(told.x ?? layout.xaxis?.title?.text);
  const y = plain(told.y ?? yaxis?.title?.text);
  const xs = told.xs ?? trace.x;
  const ys = told.ys ?? trace.y;
  const notes = trace.hovertext ?? [];
  const points = xs.flatMap((value, index) =>
    value === null || (ys[index] ?? null) === null ? [] : [{
      index, x: plain(value), y: plain(ys[index]), note: plain(notes[index]),
    }]);
  return points.length ? [{ curve, name, x, y, points, yaxis: trace.yaxis ?? "y" }] : [];
});

const table = (figure) => {
  const found = series(figure);
  const names = [...new Set(found.map((each) => each.y))];
  const noted = found.some((each) => each.points.some((point) => point.note));
  const head = ["series", found[0]?.x, names.length === 1 ? names[0] : "value"];
  const rows = found.flatMap((each) => each.points.map((point) => [
    names.length === 1 ? each.name : [each.name, each.y].filter(Boolean).join(", "),
    point.x, point.y, ...(noted ? [point.note] : []),
  ]));
  return [noted ? [...head, "note"] : head, ...rows];
};

// A spreadsheet takes words that begin like a formula for one.
const field = (text) => {
  const isNumber = text.trim() !== "" && Number.isFinite(Number(text));
  const safe = !isNumber && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = (figure) =>
  table(figure).map((row) => row.map(field).join(",") + "\r\n").join("");

const save = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const asTable = (figure) => {
  const [head, ...rows] = table(figure);
  const element = document.createElement("table");
  const line = (parent, cells, kind) => {
    const row = parent.insertRow();
    for (const text of cells) {
      const cell = row.appendChild(document.createElement(kind));
      if (kind === "th") cell.scope = "col";
      cell.textContent = text;
    }
  };
  line(element.createTHead(), head, "th");
  const body = element.createTBody();
  for (const row of rows) line(body, row, "td");
  return element;
};

const steps = (place, figure) => {
  let found = null;
  let at = null;
  const move = (key) => {
    if (!at) return { curve: 0, point: 0 };
    const { points } = found[at.curve];
    const last = points.length - 1;
    const along = { ArrowLeft: at.point - 1, ArrowRight: at.point + 1, Home: 0, End: last };
    if (key in along) return { ...at, point: Math.min(Math.max(along[key], 0), last) };
    const across = key === "ArrowDown" ? at.curve + 1 : at.curve - 1;
    const curve = Math.min(Math.max(across, 0), found.length - 1);
    return { curve, point: Math.min(at.point, found[curve].points.length - 1) };
  };
  place.addEventListener("keydown", (event) => {
    if (event.target !== place) return;
    found ??= series(figure);
    if (!found.length) return;
    if (event.key === "Escape") {
      Plotly.Fx.unhover(place);
      at = null;
      return;
    }
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]
      .includes(event.key)) return;
    event.preventDefault();
    at = move(event.key);
    const { curve, name, x, y, points, yaxis } = found[at.curve];
    const point = points[at.point];
    Plotly.Fx.hover(place, [{ curveNumber: curve, pointNumber: point.index }], [`x${yaxis}`]);
    const said = point.note || `${x} ${point.x}, ${y} ${point.y}`;
    document.getElementById("said").textContent =
      `${name ? `${name}: ` : ""}${said} (${at.point + 1} of ${points.length})`;
  });
  place.addEventListener("blur", () => {
    if (at) Plotly.Fx.unhover(place);
    at = null;
  });
};

// Beside each chart: its numbers as a file, and as a table that is made when opened.
const numbersBeside = (place, figure) => {
  const said = place.getAttribute("aria-label");
  const beside = document.createElement("div");
  beside.className = "beside";
  const button = beside.appendChild(document.createElement("button"));
  button.type = "button";
  button.textContent = "CSV";
  button.setAttribute("aria-label", `CSV: ${said}`);
  button.addEventListener("click", () => save(`${place.id}.csv`, csv(figure)));
  const details = beside.appendChild(document.createElement("details"));
  const summary = details.appendChild(document.createElement("summary"));
  summary.textContent = "Numbers";
  summary.setAttribute("aria-label", `Numbers: ${said}`);
  const holder = details.appendChild(document.createElement("div"));
  holder.className = "wide";
  details.addEventListener("toggle", () => {
    if (details.open && !holder.firstChild) holder.append(asTable(figure));
  });
  place.after(beside);
};
