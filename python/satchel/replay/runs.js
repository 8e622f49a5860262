"use strict";
// Many runs: how savings are spread, what policies cost, the worst runs, and one of them.

const KEPT = 0, PRICE = 1, LOST = 2, OVER = 3, COMPACTIONS = 4; // places in a run's figures
const STEP = 25; // rows that are added at a time

const saving = (price) => (price === null ? "–" : (100 * (1 - price)).toFixed(1) + " %");
const saved = (price) => (price > 1 ? `costs ${(100 * (price - 1)).toFixed(1)} % more` : `saves ${saving(price)}`);
const isLimit = (name) => name === data.reference || data.clairvoyant.includes(name);

// --- all runs --------------------------------------------------------------------------------

function drawSpread() {
  const box = byId("spread");
  box.replaceChildren();
  for (const name of data.policies) {
    if (name === data.reference) continue;
    const found = data.spread[name], [low, middle, high] = found.marks;
    const figure = element("figure"), caption = element("figcaption");
    const dearer = found.dearer ? `; dearer than everything in ${whole(found.dearer)} runs` : "";
    caption.append(element("b", name), element("span", middle === undefined ? "no run with a price" : `half of the runs save ${shown(middle, "share")} or more; nine of ten between ${shown(low, "share")} and ${shown(high, "share")}${dearer}`));
    figure.append(caption, drawBars(name, found));
    box.append(figure);
  }
}

function drawBars(name, found) {
  const width = 300, height = 110, foot = 20, most = Math.max(1, ...found.bars);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `How many runs ${name} saves how much`);
  const column = width / found.bars.length, middle = width / 2;
  found.bars.forEach((runs, bar) => {
    const size = (runs / most) * (height - foot - 6);
    // What can be seen at all is at least a pixel high.
    if (runs) drawn(svg, "rect", { x: bar * column + 0.5, y: height - foot - Math.max(size, 1), width: column - 1, height: Math.max(size, 1), fill: colour(bar < found.bars.length / 2 ? "miss" : "whole") });
  });
  drawn(svg, "line", { x1: 0, x2: width, y1: height - foot, y2: height - foot, stroke: colour("line") });
  drawn(svg, "line", { x1: middle, x2: middle, y1: 2, y2: height - foot, stroke: colour("soft"), "stroke-dasharray": "3 4" });
  for (const [at, anchor, text] of [[2, "start", "−100 %"], [middle, "middle", "saves nothing"], [width - 2, "end", "100 %"]]) {
    drawn(svg, "text", { x: at, y: height - 5, "text-anchor": anchor, class: "soft" }, text);
  }
  return svg;
}

function drawTotals() {
  const box = byId("costs"), body = element("tbody"), table = element("table", null, { class: "bars" });
  const all = data.policies.map((name) => ({ name, cost: data.spread[name].cost })).sort((one, other) => one.cost - other.cost);
  const most = Math.max(1e-9, ...all.map((one) => one.cost)), full = data.spread[data.reference].cost;
  for (const { name, cost } of all) {
    const line = element("tr", null, isLimit(name) ? { class: "limit" } : {});
    const place = element("td"), bar = element("i");
    bar.style.width = `${Math.max(0.5, (100 * cost) / most)}%`;
    if (isLimit(name)) bar.className = "soft";
    place.append(bar);
    line.append(element("td", name), place, element("td", dollars(cost)), element("td", name === data.reference ? "everything" : full ? saved(cost / full) : "–"));
    body.append(line);
  }
  table.append(body);
  box.replaceChildren(table);
}

// --- the worst -------------------------------------------------------------------------------

const BADNESS = {
  kept: (run, figures) => (run.long ? figures[KEPT] / run.long : 2),
  lost: (run, figures) => -figures[LOST],
  price: (run, figures) => -(figures[PRICE] ?? 0),
  longest: (run) => -run.calls,
};

let rows = STEP;

function fillRuns() {
  const place = Number(byId("policy").value), order = BADNESS[byId("order").value], table = byId("runs");
  const head = element("thead"), row = element("tr"), body = element("tbody");
  const titles = ["run", "messages", "calls", "tokens", "long references", "kept in line", "lost", "saved"];
  for (const title of titles) row.append(element("th", title, { scope: "col" }));
  head.append(row);
  const sorted = data.runs.map((run, number) => ({ run, number, bad: order(run, run.by_policy[place]) })).sort((one, other) => one.bad - other.bad || one.number - other.number);
  for (const { run, number } of sorted.slice(0, rows)) {
    const figures = run.by_policy[place], line = element("tr"), name = element("td");
    name.append(element("a", run.name, { href: `#run-${number}` }));
    if (run.title) name.append(element("small", run.title));
    line.append(name);
    for (const count of [run.messages, run.calls, run.tokens, run.long]) line.append(element("td", whole(count)));
    line.append(element("td", run.long ? shown(figures[KEPT] / run.long, "share") : "–"), element("td", whole(figures[LOST])), element("td", saving(figures[PRICE])));
    [...line.children].forEach((cell, at) => cell.setAttribute("data-title", titles[at]));
    body.append(line);
  }
  table.replaceChildren(head, body);
  byId("more").hidden = rows >= data.runs.length;
}

// --- one run ---------------------------------------------------------------------------------

function showOne() {
  const box = byId("one"), found = /^#run-(\d+)$/.exec(location.hash);
  const run = found ? data.runs[Number(found[1])] : undefined;
  if (!run) {
    box.replaceChildren(element("p", "Choose a run in the table above; its address can be shared with this page.", { class: "note" }));
    return;
  }
  const table = element("table", null, { class: "cards" }), head = element("thead"), row = element("tr"), body = element("tbody");
  const titles = ["policy", "kept in line", "lost", "over budget", "compactions", "price", "saved"];
  for (const title of titles) row.append(element("th", title, { scope: "col" }));
  head.append(row);
  data.policies.forEach((name, place) => {
    const figures = run.by_policy[place], line = element("tr", null, isLimit(name) ? { class: "limit" } : {});
    const price = figures[PRICE];
    line.append(element("td", name), element("td", run.long ? `${whole(figures[KEPT])} of ${whole(run.long)}` : "–"), element("td", whole(figures[LOST])), element("td", whole(figures[OVER])), element("td", figures[COMPACTIONS] === null ? "–" : whole(figures[COMPACTIONS])), element("td", price === null ? "–" : dollars(price * run.cost)), element("td", name === data.reference ? "–" : saving(price)));
    [...line.children].forEach((cell, at) => cell.setAttribute("data-title", titles[at]));
    body.append(line);
  });
  table.append(head, body);
  const framed = element("div", null, { class: "frame" });
  framed.append(table);
  const facts = `${run.format}; ${whole(run.messages)} messages, ${whole(run.calls)} calls, ${whole(run.tokens)} tokens, windows of ${whole(run.budget)}`;
  box.replaceChildren(element("h3", run.name), element("p", run.title ? `${run.title} – ${facts}` : facts, { class: "note" }), framed);
  const picture = data.pictures.findIndex((one) => one.name === run.name);
  if (picture >= 0) {
    byId("which").value = String(picture);
    showRun();
    const link = element("p");
    link.append(element("a", "Call by call", { href: "#h-calls" }));
    box.append(link);
  }
}

function goToOne() {
  if (!/^#run-\d+$/.test(location.hash)) return;
  showOne();
  byId("h-one").scrollIntoView();
}

function startRuns() {
  data.policies.forEach((name, place) => byId("policy").append(element("option", name, { value: place })));
  drawTotals();
  fillRuns();
  showOne();
  for (const id of ["policy", "order"]) {
    byId(id).addEventListener("change", () => {
      rows = STEP;
      fillRuns();
    });
  }
  byId("more").addEventListener("click", () => {
    rows += STEP;
    fillRuns();
  });
  window.addEventListener("hashchange", goToOne);
}
