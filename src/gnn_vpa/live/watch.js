// Asks for the state of the run about once a second, and shows it. Names come from outside: texts
// are only ever set as text, so that whatever a data set is called, it is called that and no more.
"use strict";

const PAUSE = 1000, HIDDEN_PAUSE = 5000;
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#8A6FDF"];
const SVG = "http://www.w3.org/2000/svg";
const TITLES = { loss: "training loss", valid: "validation", test: "test" };
const at = id => document.getElementById(id);
let state = null, drawn = {}, part = "loss", lost = false;

function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter(child => child !== null));
  return element;
}

const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// A part of the page is made anew only if what it shows has changed: who reads it, or has it read
// aloud, is not disturbed every second.
function show(id, value, fill) {
  const text = JSON.stringify(value ?? null);
  if (drawn[id] === text) return;
  drawn[id] = text;
  fill(value);
}

function headline() {
  const { status, done, total, left } = state;
  const cells = total !== null && total !== done ? `${done.toLocaleString("en")} of ${count(total, "cell")}`
    : count(done, "cell");
  switch (status) {
    case "waiting": return ["Waiting for the run to begin.", ""];
    case "error": return ["The results cannot be read.", state.error];
    case "finished": return [`Finished: ${cells}.`, ""];
    case "stopped":
      return [`Stopped: ${cells} done.`, "No process is at work. The same command goes on where it was."];
  }
  if (total !== null && done >= total)
    return [`${cells} done.`, "The run records what its networks start with, and ends."];
  return [`${cells} done${left ? `, ${left} left` : ""}.`,
    left ? "" : "How long it will take is known after the first epochs."];
}

function showHead() {
  const [text, more] = headline();
  at("headline").textContent = text;
  at("subline").textContent = lost
    ? "gnn-vpa watch does not answer any more: this is the last that was seen." : more;
  at("subline").classList.toggle("warn", lost);
  const { done, total, status } = state, bar = at("bar");
  bar.hidden = !total;
  if (total) {
    bar.setAttribute("aria-valuemax", total);
    bar.setAttribute("aria-valuenow", done);
    bar.setAttribute("aria-valuetext", `${done} of ${total}`);
    bar.firstElementChild.style.width = `${100 * done / total}%`;
  }
  document.title = `${total ? `${done}/${total} ` : ""}${status} – gnn-vpa watch`;
  show("spoken", [done, total, status], () => { at("spoken").textContent = `${status}, ${done} cells done`; });
  at("updated").textContent = `As of ${new Date(1000 * state.now).toLocaleTimeString()}.`;
}

function table(caption, header, rows) {
  const head = make("tr", {}, ...header.map(name => make("th", { scope: "col", class: "text" }, name)));
  const body = rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row" }, first),
    ...rest.map(cell => make("td", { class: "text" }, cell))));
  return make("div", { class: "scroll", role: "region", "aria-label": `${caption}, scrolls sideways`, tabindex: "0" },
    make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)));
}

function showAnswer(answer) {
  at("answer").hidden = !answer;
  if (!answer) return;
  at("answer-title").textContent = state.status === "finished" ? "The answer" : "The answer so far";
  const parts = answer.warnings.map(text => make("p", { class: "note" }, text));
  for (const { setting, headline, more, sets } of answer.questions) {
    if (setting) parts.push(make("h3", {}, setting));
    parts.push(make("p", { class: "answer-headline" }, headline));
    if (more.length) parts.push(make("ul", {}, ...more.map(text => make("li", {}, text))));
    if (sets.length)
      parts.push(table("Data set by data set", ["data set", "may be the best", "avoid (what it costs)"], sets));
  }
  if (state.status !== "finished")
    parts.push(make("p", { class: "note" }, `After ${count(answer.cells, "cell")}. It may change with the others.`));
  at("answer-body").replaceChildren(...parts);
}

function showRunning(running) {
  at("running").hidden = !running.length;
  at("running-body").replaceChildren(...running.map(work => {
    const { epoch, epochs, cells } = work;
    const bar = make("div", { class: "bar small", role: "progressbar", "aria-label": `Epochs of ${work.group}`,
      "aria-valuemin": 0, "aria-valuemax": epochs || 1, "aria-valuenow": epoch }, make("span"));
    bar.firstElementChild.style.width = `${epochs ? 100 * epoch / epochs : 0}%`;
    const silent = work.silent ? make("span", { class: "warn" }, `no news for ${work.silent}`) : null;
    return make("li", {},
      make("div", { class: "what" }, work.group),
      epochs ? bar : null,
      make("p", { class: "note" },
        make("span", {}, epochs ? `epoch ${epoch} of ${epochs}` : "no epochs"),
        cells > 1 ? make("span", {}, count(cells, "cell")) : null, silent),
      make("p", { class: "note" }, make("span", {}, work.worker), make("span", {}, work.device)));
  }));
}

// Learning curves --------------------------------------------------------------------------------

const WIDTH = 320, HEIGHT = 170, LEFT = 40, RIGHT = 8, TOP = 8, BOTTOM = 20;

function ticks(low, high, isLog) {
  if (isLog) {
    const found = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10)
      found.push(...[1, 2, 5].map(factor => factor * power).filter(tick => tick >= low && tick <= high));
    const every = Math.ceil(found.length / 5);
    return found.filter((_, number) => number % every === 0);
  }
  const raw = (high - low) / 3 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= raw);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) found.push(tick);
  return found;
}

const written = value => value === null || value === undefined ? "–" : String(Number(value.toPrecision(3)));

function points(line, scale) {
  return line.epoch.map((epoch, n) => [epoch, line[part][n] === null ? null : scale * line[part][n]])
    .filter(([, value]) => value !== null);
}

function figure(picture) {
  const scale = picture.is_share && part !== "loss" ? 100 : 1;
  const what = part === "loss" ? "training loss"
    : `${TITLES[part]} ${picture.metric}${picture.is_share ? " in %" : ""}`;
  const lines = picture.lines.map((line, number) => ({
    ...line, colour: line.colour ?? PALETTE[number % PALETTE.length], points: points(line, scale) }));
  const values = lines.flatMap(line => line.points.map(([, value]) => value));
  let low = Math.min(...values), high = Math.max(...values);
  if (!values.length) [low, high] = [0, 1];
  if (high - low < 1e-9 * Math.max(Math.abs(high), 1)) [low, high] = [low - 0.5, high + 0.5];
  // The first epochs of a loss may be far above all others.
  const isLog = part === "loss" && low > 0 && high > 4 * low;
  const height = isLog ? Math.log : value => value;
  const last = Math.max(picture.epochs, 2);
  const x = epoch => LEFT + (epoch - 1) / (last - 1) * (WIDTH - LEFT - RIGHT);
  const y = value => TOP + (height(high) - height(value)) / (height(high) - height(low)) * (HEIGHT - TOP - BOTTOM);
  const parts = [];
  for (const tick of ticks(low, high, isLog)) {
    parts.push(make("svg:line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
      make("svg:text", { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }, written(tick)));
  }
  parts.push(make("svg:text", { x: LEFT, y: HEIGHT - 4 }, "1"),
    make("svg:text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, `epoch ${last}`));
  for (const line of lines) {
    if (!line.points.length) continue;
    const path = line.points.map(([epoch, value], n) => `${n ? "L" : "M"}${x(epoch).toFixed(1)} ${y(value).toFixed(1)}`);
    parts.push(make("svg:path", { class: "line", d: path.join(""), stroke: line.colour, "stroke-dasharray": line.dashes }));
    if (line.growing) {
      const [epoch, value] = line.points.at(-1);
      parts.push(make("svg:circle", { cx: x(epoch), cy: y(value), r: 3.5, fill: line.colour }));
    }
  }
  const now = lines.map(line => {
    const end = line.points.at(-1);
    return `${line.name}: ${end ? `${written(end[1])} at epoch ${end[0]}` : "nothing yet"}`;
  });
  const left = picture.left_out > 0 ? make("p", { class: "note" }, `${count(picture.left_out, "more line")} not drawn.`) : null;
  return make("figure", {},
    make("figcaption", {}, picture.name),
    make("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `${picture.name}, ${what} by epoch. ${now.join("; ")}.` }, ...parts),
    make("ul", { class: "legend" }, ...lines.map(line => make("li", {},
      make("svg:svg", { viewBox: "0 0 28 10", "aria-hidden": "true" },
        make("svg:line", { class: "line", x1: 1, x2: 27, y1: 5, y2: 5, stroke: line.colour, "stroke-dasharray": line.dashes })),
      make("span", { class: "name" }, line.name),
      line.diverged.length ? make("span", { class: "warn" }, count(line.diverged.length, "fold") + " diverged") : null,
      make("span", { class: "value" }, written(line.points.at(-1)?.[1]))))), left);
}

function showCurves([pictures, rest]) {
  at("curves").hidden = !pictures.length;
  at("curves-body").replaceChildren(...pictures.map(figure));
  at("curves-rest").textContent = rest ? `${count(rest, "more picture")} not drawn: gnn-vpa report has all.` : "";
}

function showDiverged(diverged) {
  at("diverged").hidden = !diverged.length;
  at("diverged-body").replaceChildren(...diverged.map(({ name, folds, growing }) =>
    make("li", {}, `${name}: ${folds.length === 1 ? "fold" : "folds"} ${folds.join(", ")}${growing ? " (in training)" : ""}`)));
}

function showLatest(latest) {
  at("latest").hidden = !latest.length;
  at("latest-body").replaceChildren(...latest.map(({ name, score, metric }) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "value" }, metric === "Accuracy" ? score : `${score} ${metric}`))));
}

function render() {
  showHead();
  const running = (state.running ?? []).map(({ silent, ...work }) =>
    ({ ...work, silent: silent > 30 ? duration(10 * Math.floor(silent / 10)) : "" }));
  show("answer", state.answer && [state.answer, state.status], () => showAnswer(state.answer));
  show("running", running, showRunning);
  show("curves", [state.pictures ?? [], state.pictures_left_out ?? 0, part], showCurves);
  show("diverged", state.diverged ?? [], showDiverged);
  show("latest", state.latest ?? [], showLatest);
}

async function look() {
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    state = await answer.json();
    lost = false;
  } catch {
    lost = true;
  }
  if (state) render();
  else at("subline").textContent = "gnn-vpa watch does not answer.";
  setTimeout(look, document.hidden ? HIDDEN_PAUSE : PAUSE);
}

for (const input of document.querySelectorAll("input[name=part]"))
  input.addEventListener("change", () => { part = input.value; if (state) render(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && state) render(); });
look();
