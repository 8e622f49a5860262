"use strict";
// Draws the report. Content is only ever written as text: nothing here builds HTML from a string.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const LEVELS = ["gone", "stub", "trimmed", "whole"];
const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

function drawn(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const whole = (number) => number.toLocaleString("en");
const dollars = (number) => "$" + (number < 0.1 ? number.toFixed(4) : number.toFixed(2));

function shown(number, kind) {
  if (number === null) return "–";
  if (kind === "count") return whole(Math.round(number));
  if (kind === "ratio") return number.toFixed(2);
  return (100 * number).toFixed(1) + " %";
}

// The unit stands with the figure itself.
const interval = (low, high, kind) => [low, high].map((number) => shown(number, kind).replace(" %", "")).join("–");
const drawingWidth = (box) => Math.max(300, Math.min(1180, box.clientWidth - 18));

// --- the plane -------------------------------------------------------------------------------

// A place for a label beside its point where no other label is: right of it or left, then lower.
function placed(at, length, labels, width) {
  for (let down = 0; down < 12; down += 1) {
    const line = at[1] + 4 + 14 * down;
    for (const column of [at[0] + 11, at[0] - 11 - length]) {
      const free = labels.every((box) => column > box.end || column + length < box.start || Math.abs(line - box.line) > 13);
      if (free && column > 60 && column + length < width) {
        labels.push({ start: column - 4, end: column + length + 4, line });
        return [column, line];
      }
    }
  }
  return [at[0] + 11, at[1] + 4];
}

function drawPlane() {
  const box = byId("plane");
  box.replaceChildren();
  // Drawn at its own size, so that a narrow window has no smaller letters.
  const width = drawingWidth(box), height = 420, left = 58, right = width > 600 ? 90 : 24, top = 16, bottom = 46;
  const points = data.policies
    .map((name) => ({ name, y: data.totals[name].lrr_line, x: data.totals[name].price }))
    .filter((point) => point.x[0] !== null && point.y[0] !== null);
  if (!points.length) {
    box.append(element("p", "No run has a long reference: there is nothing to compare.", { class: "note" }));
    return;
  }
  const most = Math.max(1.1, ...points.map((point) => point.x[2] ?? point.x[0])) * 1.04;
  const x = (value) => left + (value / most) * (width - left - right);
  const y = (value) => height - bottom - value * (height - top - bottom);
  const svg = drawn(box, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Policies by price and by long references kept" });
  for (let tick = 0; tick <= 1.0001; tick += 0.2) {
    drawn(svg, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: colour("line") });
    drawn(svg, "text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end", class: "soft" }, (100 * tick).toFixed(0) + " %");
  }
  for (let tick = 0; tick <= most; tick += 0.25) {
    drawn(svg, "text", { x: x(tick), y: height - bottom + 20, "text-anchor": "middle", class: "soft" }, tick.toFixed(2));
  }
  drawn(svg, "line", { x1: x(1), x2: x(1), y1: top, y2: height - bottom, stroke: colour("soft"), "stroke-dasharray": "3 4" });
  drawn(svg, "text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle", class: "soft" }, width > 600 ? "price, as a multiple of sending everything with a cache" : "price beside sending everything");
  // Labels keep away from all points, and come above their crosses.
  const labels = points.map((point) => ({ start: x(point.x[0]) - 8, end: x(point.x[0]) + 8, line: y(point.y[0]) + 4 }));
  const names = [];
  for (const point of points.sort((one, other) => other.y[0] - one.y[0])) {
    const limit = point.name === data.reference || data.clairvoyant.includes(point.name);
    const ink = limit ? colour("soft") : colour(data.policies[0] === point.name ? "accent" : "fresh");
    const group = drawn(svg, "g", { class: "point" });
    const at = [x(point.x[0]), y(point.y[0])];
    if (point.x[1] !== null && point.y[1] !== null) {
      drawn(group, "line", { x1: x(point.x[1]), x2: x(point.x[2]), y1: at[1], y2: at[1], stroke: ink, "stroke-opacity": 0.45, "stroke-width": 2 });
      drawn(group, "line", { x1: at[0], x2: at[0], y1: y(point.y[1]), y2: y(point.y[2]), stroke: ink, "stroke-opacity": 0.45, "stroke-width": 2 });
    }
    drawn(group, "circle", { cx: at[0], cy: at[1], r: 5.5, fill: limit ? colour("card") : ink, stroke: ink, "stroke-width": 2 });
    names.push([point.name, at]);
  }
  for (const [name, at] of names) {
    const [column, line] = placed(at, 6.6 * name.length, labels, width);
    drawn(svg, "text", { x: column, y: line, class: "over" }, name);
  }
}

// --- tables ----------------------------------------------------------------------------------

function best(measure) {
  const candidates = data.policies.filter((name) => name !== data.reference && !data.clairvoyant.includes(name));
  const values = candidates.map((name) => data.totals[name][measure.key][0]).filter((value) => value !== null);
  return measure.better === "more" ? Math.max(...values) : Math.min(...values);
}

function fillTotals() {
  const head = element("thead"), row = element("tr"), body = element("tbody");
  row.append(element("th", "policy", { scope: "col" }));
  for (const measure of data.measures) {
    row.append(element("th", measure.title, { scope: "col", title: measure.meaning }));
    byId("meanings").append(element("dt", measure.title), element("dd", measure.meaning));
  }
  head.append(row);
  const bests = Object.fromEntries(data.measures.map((measure) => [measure.key, best(measure)]));
  for (const name of data.policies) {
    const limit = name === data.reference || data.clairvoyant.includes(name);
    const line = element("tr", null, limit ? { class: "limit" } : {});
    line.append(element("td", name));
    for (const measure of data.measures) {
      const [value, low, high] = data.totals[name][measure.key];
      const cell = element("td", shown(value, measure.kind));
      if (!limit && value !== null && measure.kind !== "count" && value === bests[measure.key]) cell.className = "best";
      if (["loss", "over"].includes(measure.key) && value > 0) cell.className = "bad";
      if (low !== null && measure.kind !== "count") cell.append(element("small", interval(low, high, measure.kind)));
      cell.setAttribute("data-title", measure.title);
      line.append(cell);
    }
    body.append(line);
  }
  byId("totals").append(head, body);
}

// --- pictures --------------------------------------------------------------------------------

function palette() {
  return LEVELS.map(colour);
}

function drawPicture(canvas, run, policy) {
  const calls = policy.at.length, messages = run.messages;
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 300, height = 170, foot = 9;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + foot) * scale);
  canvas.style.height = height + foot + "px";
  const pen = canvas.getContext("2d"), inks = palette();
  pen.scale(scale, scale);
  pen.fillStyle = inks[0];
  pen.fillRect(0, 0, width, height);
  const column = width / calls;
  // Longer messages are higher, short ones can still be seen.
  const sizes = run.tokens.map((tokens) => tokens + run.least);
  const unit = height / sizes.reduce((total, size) => total + size, 0);
  const tops = [];
  sizes.reduce((top, size, message) => {
    tops[message] = top * unit;
    return top + size;
  }, 0);
  // A band is a run of calls in which a message keeps its level.
  const since = new Array(messages).fill(0), levels = new Array(messages).fill(0);
  const band = (message, until) => {
    if (!levels[message]) return;
    pen.fillStyle = inks[levels[message]];
    pen.fillRect(since[message] * column, tops[message], (until - since[message]) * column + 0.3, Math.max(sizes[message] * unit, 0.5) + 0.15);
  };
  policy.changes.forEach((changes, call) => {
    for (let place = 0; place < changes.length; place += 2) {
      band(changes[place], call);
      levels[changes[place]] = changes[place + 1];
      since[changes[place]] = call;
    }
  });
  for (let message = 0; message < messages; message += 1) band(message, calls);
  pen.fillStyle = colour("miss");
  for (const [call] of policy.missed) pen.fillRect(call * column, height + 2, Math.max(column, 1.5), foot - 3);
}

function drawCosts(run, policy) {
  const width = drawingWidth(byId("detail")), height = 200, left = 62, right = 10, top = 10, bottom = 30;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Tokens of each window, from the cache and not");
  const calls = policy.at.length;
  const most = Math.max(run.budget, ...policy.tokens) * 1.05;
  const x = (call) => left + (call / calls) * (width - left - right);
  const y = (tokens) => height - bottom - (tokens / most) * (height - top - bottom);
  const area = (upper, lower, ink) => {
    const points = [];
    upper.forEach((tokens, call) => points.push(`${x(call).toFixed(1)},${y(tokens).toFixed(1)} ${x(call + 1).toFixed(1)},${y(tokens).toFixed(1)}`));
    lower.map((tokens, call) => [tokens, call]).reverse().forEach(([tokens, call]) => points.push(`${x(call + 1).toFixed(1)},${y(tokens).toFixed(1)} ${x(call).toFixed(1)},${y(tokens).toFixed(1)}`));
    drawn(svg, "polygon", { points: points.join(" "), fill: ink });
  };
  area(policy.cached, policy.cached.map(() => 0), colour("cached"));
  area(policy.tokens, policy.cached, colour("fresh"));
  drawn(svg, "line", { x1: left, x2: width - right, y1: y(run.budget), y2: y(run.budget), stroke: colour("ink"), "stroke-dasharray": "4 4" });
  drawn(svg, "text", { x: left - 6, y: y(run.budget) + 4, "text-anchor": "end", class: "soft" }, whole(run.budget));
  drawn(svg, "text", { x: left - 6, y: y(0), "text-anchor": "end", class: "soft" }, "0");
  drawn(svg, "text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle", class: "soft" }, `${whole(calls)} calls; dashed: the budget, in tokens`);
  for (const call of policy.compacted) drawn(svg, "path", { d: `M${x(call).toFixed(1)} ${height - bottom + 3}l-3 6h6z`, fill: colour("accent") });
  return svg;
}

let chosen = data.policies[0];

function showDetail(run) {
  const policy = run.policies[chosen], box = byId("detail");
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const chart = element("div", null, { class: "figure" });
  chart.append(drawCosts(run, policy));
  const tokens = sum(policy.tokens);
  const cost = element("p", `${dollars(sum(policy.cost))} for the run; ${shown(tokens ? sum(policy.cached) / tokens : 0, "share")} of ${whole(tokens)} input tokens came from the cache; room was made ${whole(policy.compacted.length)} times.`, { class: "note" });
  box.replaceChildren(element("h3", `${chosen}: cost and cache, call by call`), cost, chart, element("h3", "What was missed most"));
  if (!policy.worst.length) {
    box.append(element("p", "Every long reference could be read.", { class: "note" }));
    return;
  }
  const list = element("ul", null, { class: "losses" });
  for (const loss of policy.worst) {
    const item = element("li");
    item.append(element("code", loss.name));
    const times = loss.misses === 1 ? "one call" : `${whole(loss.misses)} calls`;
    item.append(element("span", ` missed by ${times}, first before message ${whole(loss.at)}; last seen in message ${whole(loss.newest)}${loss.pointer ? ", behind a pointer" : ""}`));
    item.append(element("pre", loss.line, { title: "the line that held it" }), element("pre", "→ " + loss.action, { title: "the action that used it" }));
    list.append(item);
  }
  box.append(list);
}

function showRun() {
  const run = data.pictures[Number(byId("which").value)], box = byId("pictures");
  if (!run) return;
  run.least = 0.25 * run.tokens.reduce((total, tokens) => total + tokens, 0) / Math.max(run.messages, 1) + 1;
  box.replaceChildren();
  for (const name of data.policies) {
    const policy = run.policies[name];
    const figure = element("figure", null, { tabindex: "0", role: "button", "aria-pressed": String(name === chosen) });
    const caption = element("figcaption");
    const [long, kept] = policy.long;
    caption.append(element("b", name), element("span", `${long ? shown(kept / long, "share") : "–"} of ${whole(long)} long references kept in line`));
    const canvas = element("canvas", null, { role: "img", "aria-label": `What ${name} kept at each call` });
    figure.append(caption, canvas);
    const choose = () => {
      chosen = name;
      for (const other of box.children) other.setAttribute("aria-pressed", String(other === figure));
      showDetail(run);
    };
    figure.addEventListener("click", choose);
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose();
      }
    });
    box.append(figure);
    drawPicture(canvas, run, policy);
  }
  showDetail(run);
}

// --- the page --------------------------------------------------------------------------------

function start() {
  const kept = data.runs_in_all > data.runs.length ? ` (${whole(data.runs.length)} of them are listed: the worst of each policy, and the longest)` : "";
  byId("lead").textContent = `${whole(data.runs_in_all)} recorded runs${kept}, ${whole(data.calls_in_all)} calls, windows of ${data.budget}; counted with ${data.counter}, prices of ${data.model} with its prompt cache.`;
  for (const [name, text] of [["whole", "whole"], ["trimmed", "trimmed"], ["stub", "stub or placeholder"], ["gone", "not in the window"], ["miss", "the call missed something"], ["cached", "from the cache"], ["fresh", "not from the cache"]]) {
    const item = element("li"), swatch = element("i");
    swatch.style.background = `var(--${name})`;
    item.append(swatch, text);
    byId("legend").append(item);
  }
  data.pictures.forEach((run, place) => byId("which").append(element("option", run.name, { value: place })));
  if (!data.pictures.length) byId("pictures").append(element("p", "No run was kept in detail.", { class: "note" }));
  fillTotals();
  startRuns();
  byId("which").addEventListener("change", showRun);
  if (data.skipped_in_all) {
    byId("skipped").append(element("h3", `${whole(data.skipped_in_all)} conversations were not replayed`));
    const list = element("ul");
    for (const [source, index, reason] of data.skipped.slice(0, 50)) list.append(element("li", `${source} #${index}: ${reason}`));
    byId("skipped").append(list);
  }
  const draw = () => {
    drawPlane();
    drawSpread();
    showRun();
  };
  draw();
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  goToOne();
  document.documentElement.dataset.drawn = "yes";
}

start();
