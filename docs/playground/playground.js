// The playground: the variance of every layer of a network, predicted and simulated.
//
// The first half computes and knows nothing of the page; tests compare it with the Python functions:
// `predictIndependent` with gnn_vpa.signal.expectation, `secondMomentOfMaximum` with
// gnn_vpa.signal.maximum, `predictExact` and `messageCorrelation` with gnn_vpa's operators.
"use strict";

// Graphs ---------------------------------------------------------------------------------------------

const MOST_NODES = 40;
const WIDTH = 64; // features of the simulated networks
const DRAWS = 24; // networks that are drawn

/** Random numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Standard normal numbers from uniform ones (Box and Muller). */
function normal(random) {
  let spare = null;
  return () => {
    if (spare !== null) {
      const kept = spare;
      spare = null;
      return kept;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

const consecutive = (from, to) =>
  Array.from({ length: Math.max(0, to - from) }, (_, k) => [from + k, from + k + 1]);
const allPairs = (from, to) => {
  const pairs = [];
  for (let i = from; i < to; i++) for (let j = i + 1; j < to; j++) pairs.push([i, j]);
  return pairs;
};
const onCircle = (count, x, y, radius, from = -Math.PI / 2) =>
  Array.from({ length: count }, (_, k) => {
    const angle = from + (2 * Math.PI * k) / count;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });

// A graph is its edges, pairs of node numbers, each once, and the places [x, y] of its nodes.
const GRAPHS = {
  path: (n) => ({
    edges: consecutive(0, n - 1),
    places: Array.from({ length: n }, (_, k) => {
      const t = n > 1 ? k / (n - 1) : 0.5; // a wave, so that many nodes have room
      return [8 + 104 * t, 42 + 18 * Math.sin(2 * Math.PI * t)];
    }),
  }),
  cycle: (n) => ({
    edges: n > 2 ? [...consecutive(0, n - 1), [0, n - 1]] : consecutive(0, n - 1),
    places: onCircle(n, 60, 42, 34),
  }),
  star: (n) => ({
    edges: Array.from({ length: n - 1 }, (_, k) => [0, k + 1]),
    places: [[60, 42], ...onCircle(n - 1, 60, 42, 34)],
  }),
  grid: (n) => {
    const columns = Math.ceil(Math.sqrt(n * 1.4));
    const rows = Math.ceil(n / columns);
    const edges = [];
    for (let k = 0; k < n; k++) {
      if ((k + 1) % columns && k + 1 < n) edges.push([k, k + 1]);
      if (k + columns < n) edges.push([k, k + columns]);
    }
    const step = Math.min(100 / Math.max(1, columns - 1), 66 / Math.max(1, rows - 1), 22);
    const left = 60 - (step * (columns - 1)) / 2;
    const top = 42 - (step * (rows - 1)) / 2;
    const places = Array.from({ length: n }, (_, k) => [
      left + step * (k % columns),
      top + step * Math.floor(k / columns),
    ]);
    return { edges, places };
  },
  complete: (n) => ({ edges: allPairs(0, n), places: onCircle(n, 60, 42, 34) }),
  tree: (n) => ({
    edges: Array.from({ length: n - 1 }, (_, k) => [Math.floor(k / 2), k + 1]),
    places: Array.from({ length: n }, (_, k) => {
      const level = Math.floor(Math.log2(k + 1));
      const levels = Math.floor(Math.log2(n)) || 1;
      const across = 2 ** level;
      return [(120 * (k + 1 - across + 0.5)) / across, 9 + (66 * level) / levels];
    }),
  }),
  barbell: (n) => {
    // Two complete graphs, a third of the nodes each, and a path between nodes that face each other.
    const bell = Math.max(1, Math.floor(n / 3));
    const bridge = n - 2 * bell;
    const radius = bell > 1 ? 14 : 0;
    const bells = [...onCircle(bell, 20, 42, radius, 0), ...onCircle(bell, 100, 42, radius, Math.PI)];
    const between = Array.from({ length: bridge }, (_, k) => {
      const t = (k + 1) / (bridge + 1);
      return [34 + 52 * t, 42 + 26 * Math.sin(2 * Math.PI * t)];
    });
    return {
      edges: [
        ...allPairs(0, bell),
        ...allPairs(bell, 2 * bell),
        ...(bridge
          ? [[0, 2 * bell], ...consecutive(2 * bell, n - 1), [n - 1, bell]]
          : [[0, bell]]),
      ].map(([i, j]) => [Math.min(i, j), Math.max(i, j)]),
      places: [...bells, ...between],
    };
  },
  random: (n, seed) => {
    // Each pair with the probability that gives four neighbours on average.
    const random = uniform(seed + 1);
    const share = n > 1 ? Math.min(1, 4 / (n - 1)) : 0;
    const edges = allPairs(0, n).filter(() => random() < share);
    return { edges, places: springs(n, edges) };
  },
};

/** Places of nodes that push each other away while edges pull (Fruchterman and Reingold). */
function springs(count, edges) {
  const places = onCircle(count, 60, 42, 30);
  const ideal = 0.85 * Math.sqrt((104 * 68) / Math.max(1, count));
  for (let step = 0; step < 200; step++) {
    const moves = places.map(([x, y]) => [(60 - x) * 0.3, (42 - y) * 0.6]); // nobody drifts away
    const push = (i, j, strength) => {
      const [dx, dy] = [places[i][0] - places[j][0], places[i][1] - places[j][1]];
      const distance = Math.max(0.1, Math.hypot(dx, dy));
      const force = strength(distance) / distance;
      moves[i][0] += dx * force;
      moves[i][1] += dy * force;
      moves[j][0] -= dx * force;
      moves[j][1] -= dy * force;
    };
    for (const [i, j] of allPairs(0, count)) push(i, j, (d) => (ideal * ideal) / d);
    for (const [i, j] of edges) push(i, j, (d) => (-d * d) / ideal);
    const longest = 6 * (1 - step / 200);
    moves.forEach(([dx, dy], i) => {
      const shrink = Math.min(1, longest / Math.max(0.1, Math.hypot(dx, dy)));
      places[i][0] = Math.min(114, Math.max(6, places[i][0] + dx * shrink));
      places[i][1] = Math.min(78, Math.max(6, places[i][1] + dy * shrink));
    });
  }
  return places;
}

/** The neighbours of every node. */
function neighbours(count, edges) {
  const lists = Array.from({ length: count }, () => []);
  for (const [i, j] of edges) {
    lists[i].push(j);
    lists[j].push(i);
  }
  return lists;
}

// Theory ---------------------------------------------------------------------------------------------

/** The exponent p of a linear aggregation, null of max. An unknown name is an error. */
function exponentOf(aggr) {
  const known = { sum: 0, mean: 1, vpa: 0.5, max: null };
  if (Object.hasOwn(known, aggr)) return known[aggr];
  const power = /^power\((-?\d+(?:\.\d+)?)\)$/.exec(aggr);
  if (!power) throw new RangeError(`aggregation ${aggr} is unknown`);
  return Number(power[1]);
}

/** The probability that a standard normal is below x, to rounding. */
function normalBelow(x) {
  const size = Math.abs(x);
  let tail; // the probability beyond |x|
  if (size < 4) {
    // x + x^3/3 + x^5/(3 5) + ..., all terms positive
    let term = size;
    let sum = size;
    for (let k = 3; term > sum * 1e-18; k += 2) {
      term *= (size * size) / k;
      sum += term;
    }
    tail = 0.5 - (sum * Math.exp(-0.5 * size * size)) / Math.sqrt(2 * Math.PI);
  } else {
    // Laplace's continued fraction 1 / (x + 1 / (x + 2 / (x + ...)))
    let fraction = size;
    for (let k = 60; k >= 1; k--) fraction = size + k / fraction;
    tail = Math.exp(-0.5 * size * size) / (Math.sqrt(2 * Math.PI) * fraction);
  }
  return x > 0 ? 1 - tail : tail;
}

const momentsOfMaximum = new Map();

/** E max_j z_j^2 of n independent standard normals: the trapezoidal rule, exact to rounding. */
function secondMomentOfMaximum(n) {
  if (!momentsOfMaximum.has(n)) {
    let total = 0;
    let mass = 0;
    for (let k = 0; k <= 2400; k++) {
      const x = -12 + k / 100;
      const density = Math.exp(-0.5 * x * x) * normalBelow(x) ** (n - 1);
      mass += density;
      total += density * x * x;
    }
    momentsOfMaximum.set(n, total / mass);
  }
  return momentsOfMaximum.get(n);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The variance of every node after every layer if all messages were independent: a list of lists. */
function predictIndependent(lists, aggr, depth) {
  const p = exponentOf(aggr);
  const layers = [lists.map(() => 1)];
  for (let layer = 0; layer < depth; layer++) {
    const v = layers[layer];
    layers.push(
      lists.map((list) => {
        const n = list.length;
        if (!n) return 0;
        const total = list.reduce((sum, j) => sum + v[j], 0);
        return p === null ? (secondMomentOfMaximum(n) * total) / n : total * n ** (-2 * p);
      })
    );
  }
  return layers;
}

/** A linear aggregation of the rows of a matrix. */
function aggregateRows(rows, lists, p) {
  const width = rows[0].length;
  return lists.map((list) => {
    const out = new Float64Array(width);
    const scale = list.length ? list.length ** -p : 0;
    for (const j of list) for (let c = 0; c < width; c++) out[c] += rows[j][c];
    for (let c = 0; c < width; c++) out[c] *= scale;
    return out;
  });
}

const transposed = (rows) => rows.map((_, c) => Float64Array.from(rows, (row) => row[c]));

/** The mean correlation of two messages into the same node, from the covariances of all nodes. */
function messageCorrelation(covariance, lists) {
  let alike = 0;
  let most = 0;
  let all = 0;
  for (const list of lists) {
    let vector = 0;
    let length = 0;
    let squares = 0;
    for (const j of list) {
      for (const k of list) vector += covariance[j][k];
      length += Math.sqrt(covariance[j][j]);
      squares += covariance[j][j];
    }
    alike += vector - squares;
    most += length * length - squares;
    all += squares;
  }
  return most > 1e-12 * all ? alike / most : 0;
}

/** Follow the covariances of all nodes, K <- A K A^T. Null for max, which has no such form. */
function predictExact(lists, aggr, depth, rho) {
  const p = exponentOf(aggr);
  let covariance = lists.map((_, i) => Float64Array.from(lists, (_, j) => (i === j ? 1 : rho)));
  const variances = [lists.map(() => 1)];
  const correlations = []; // of the messages that each layer aggregates
  for (let layer = 0; layer < depth; layer++) {
    correlations.push(messageCorrelation(covariance, lists));
    if (p === null) return { variances: null, correlations }; // known before the first layer alone
    const half = transposed(aggregateRows(covariance, lists, p));
    covariance = aggregateRows(half, lists, p);
    variances.push(covariance.map((row, i) => row[i]));
  }
  return { variances, correlations };
}

// Simulation -----------------------------------------------------------------------------------------

/** Draw networks, and return the mean square after every layer with its standard error. */
function simulate(lists, aggr, depth, rho, seed, draws = DRAWS, width = WIDTH) {
  const p = exponentOf(aggr);
  const draw = normal(uniform(seed));
  const squares = Array.from({ length: depth + 1 }, () => []);
  for (let network = 0; network < draws; network++) {
    const shared = Float64Array.from({ length: width }, draw);
    let x = lists.map(() =>
      Float64Array.from(shared, (c) => Math.sqrt(rho) * c + Math.sqrt(1 - rho) * draw())
    );
    squares[0].push(meanSquare(x));
    for (let layer = 1; layer <= depth; layer++) {
      const mixed = p === null ? largestRows(x, lists) : aggregateRows(x, lists, p);
      x = timesRandom(mixed, width, draw);
      squares[layer].push(meanSquare(x));
    }
  }
  return squares.map((values) => {
    const centre = mean(values);
    const spread = values.reduce((sum, v) => sum + (v - centre) ** 2, 0) / (values.length - 1);
    return { mean: centre, error: Math.sqrt(spread / values.length) };
  });
}

const meanSquare = (rows) => mean(rows.map((row) => row.reduce((sum, v) => sum + v * v, 0) / row.length));

function largestRows(rows, lists) {
  return lists.map((list) => {
    const out = Float64Array.from(list.length ? rows[list[0]] : rows[0].map(() => 0));
    for (const j of list) for (let c = 0; c < out.length; c++) out[c] = Math.max(out[c], rows[j][c]);
    return out;
  });
}

function timesRandom(rows, width, draw) {
  const scale = 1 / Math.sqrt(width);
  const weights = new Float64Array(width * width);
  for (let k = 0; k < weights.length; k++) weights[k] = scale * draw();
  return rows.map((row) => {
    const out = new Float64Array(width);
    for (let from = 0, place = 0; from < width; from++) {
      const value = row[from];
      for (let to = 0; to < width; to++) out[to] += value * weights[place++];
    }
    return out;
  });
}

// What a link holds -----------------------------------------------------------------------------------

const DEFAULTS = { graph: "random", nodes: 24, aggr: "vpa", depth: 4, rho: 0, seed: 1 };

/** Read what to compute from the part of an address behind #; what is wrong there is an error. */
function readState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const [name, text] of given) {
    if (name === "edges") continue;
    if (!Object.hasOwn(DEFAULTS, name)) throw new RangeError(`${name} is no part of a link`);
    state[name] = typeof DEFAULTS[name] === "number" ? Number(text) : text;
  }
  const within = (name, low, high, whole) => {
    const value = state[name];
    if (!(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
      throw new RangeError(`${name}: expected a number from ${low} to ${high}`);
    }
  };
  within("nodes", state.graph === "drawn" ? 1 : 2, MOST_NODES, true);
  within("depth", 1, 16, true);
  within("rho", 0, 1, false);
  within("seed", 0, 999999, true);
  const exponent = exponentOf(state.aggr);
  if (exponent !== null && !(exponent >= 0 && exponent <= 1)) {
    throw new RangeError("power(p): expected p from 0 to 1");
  }
  if (state.graph !== "drawn" && !Object.hasOwn(GRAPHS, state.graph)) {
    throw new RangeError(`graph ${state.graph} is unknown`);
  }
  state.edges = [];
  for (const text of (given.get("edges") || "").split(",").filter(Boolean)) {
    const pair = text.split("-").map(Number);
    const ends = pair.every((end) => Number.isInteger(end) && end >= 0 && end < state.nodes);
    if (pair.length !== 2 || !ends || pair[0] === pair[1]) {
      throw new RangeError(`edges: ${text} does not join two of the ${state.nodes} nodes`);
    }
    state.edges.push([Math.min(...pair), Math.max(...pair)]);
  }
  return state;
}

function writeState(state, graph) {
  const { graph: kind, aggr, depth, rho, seed } = state;
  const parts = { graph: kind, nodes: graph.places.length, aggr, depth, rho, seed };
  if (kind === "drawn") parts.edges = graph.edges.map((edge) => edge.join("-")).join(",");
  return `#${new URLSearchParams(parts)}`;
}

// The page --------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

/** A number for a reader: 0.00012, 0.994, 12.3, 4,560, 1.2e+9. */
function shown(value, digits = 3) {
  if (value === 0) return "0";
  if (value >= 1e6 || value < 1e-4) return value.toExponential(1).replace("e+", "e");
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

let state = null;
let graph = null; // { edges, places }
let chosen = null; // the node that the next click joins to another

const colourOf = (aggr) => `var(--${aggr.startsWith("power") ? "power" : aggr})`;

function fresh() {
  if (state.graph === "drawn") {
    return { edges: state.edges, places: onCircle(state.nodes, 60, 42, state.nodes > 1 ? 34 : 0) };
  }
  return GRAPHS[state.graph](state.nodes, state.seed);
}

function compute() {
  const lists = neighbours(graph.places.length, graph.edges);
  const { aggr, depth, rho, seed } = state;
  const exact = predictExact(lists, aggr, depth, rho);
  const others = ["sum", "mean", "vpa"]
    .filter((name) => name !== aggr)
    .map((name) => ({
      name,
      values: predictExact(lists, name, depth, rho).variances.map(mean),
    }));
  const independent = predictIndependent(lists, aggr, depth);
  return {
    lists,
    nodes: (exact.variances || independent)[depth],
    independent: independent.map(mean),
    exact: exact.variances && exact.variances.map(mean),
    correlations: exact.correlations,
    simulated: simulate(lists, aggr, depth, rho, seed),
    others,
  };
}

function show() {
  showControls();
  if (!graph.places.length) {
    $("graph").replaceChildren();
    $("graph-summary").textContent = "No nodes yet: click into the frame.";
    for (const id of ["chart", "key"]) $(id).replaceChildren();
    $("numbers").tBodies[0].replaceChildren();
    $("answer").textContent = "Draw a graph first.";
    return;
  }
  const result = compute();
  showGraph(result);
  showAnswer(result);
  showChart(result);
  showNumbers(result);
  $("link").href = writeState(state, graph);
}

function showControls() {
  const power = state.aggr.startsWith("power");
  $("kind").value = state.graph;
  $("nodes").value = graph.places.length;
  $("nodes").disabled = state.graph === "drawn";
  $("aggr").value = power ? "power" : state.aggr;
  $("exponent-label").hidden = !power;
  if (power) $("exponent").value = exponentOf(state.aggr);
  for (const name of ["depth", "rho"]) $(name).value = state[name];
  if (document.activeElement !== $("seed")) $("seed").value = state.seed;
  $("nodes-value").value = graph.places.length;
  $("exponent-value").value = $("exponent").value;
  $("depth-value").value = state.depth;
  $("rho-value").value = state.rho;
  $("add").disabled = graph.places.length >= MOST_NODES;
}

function showGraph({ lists, nodes }) {
  const focused = document.activeElement?.dataset?.node;
  const degrees = lists.map((list) => list.length);
  const one = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  $("graph-summary").textContent =
    `${one(lists.length, "node")}, ${one(graph.edges.length, "edge")}; ` +
    `${Math.min(...degrees)} to ${Math.max(...degrees)} neighbours.`;
  const radius = Math.max(1.6, Math.min(3.4, 16 / Math.sqrt(lists.length)));
  const parts = graph.edges.map(([i, j]) => {
    const [[x1, y1], [x2, y2]] = [graph.places[i], graph.places[j]];
    return element("line", { x1, y1, x2, y2 });
  });
  graph.places.forEach(([cx, cy], i) => {
    const name = `Node ${i + 1}: ${one(degrees[i], "neighbour")}, variance ${shown(nodes[i])}`;
    const group = element("g", {
      tabindex: 0,
      role: "button",
      "aria-label": name,
      "aria-pressed": String(i === chosen),
      "data-node": i,
      class: i === chosen ? "chosen" : "",
    });
    group.append(
      element("title", {}, name),
      element("circle", { cx, cy, r: Math.max(radius, 4), class: "reach" }),
      element("circle", { cx, cy, r: radius, class: "dot", style: `fill: ${nodeColour(nodes[i])}` })
    );
    parts.push(group);
  });
  $("graph").replaceChildren(...parts);
  if (focused !== undefined) $("graph").querySelector(`[data-node="${focused}"]`)?.focus();
}

/** From mean's colour, a hundredth or less, over vpa's at 1 to sum's, a hundred or more. */
function nodeColour(variance) {
  if (variance === 0) return "var(--none)";
  const place = Math.max(-1, Math.min(1, Math.log10(variance) / 2));
  const share = Math.round(100 * Math.abs(place));
  return `color-mix(in oklab, var(--${place < 0 ? "mean" : "sum"}) ${share}%, var(--vpa))`;
}

function showAnswer({ independent, exact, simulated }) {
  const { aggr, depth } = state;
  const after = `After ${depth} layer${depth === 1 ? "" : "s"} of ${aggr}`;
  const value = exact ? exact[depth] : simulated[depth].mean; // what is exact, where something is
  let fate = "survives";
  if (value === 0) fate = "is gone: no node has neighbours";
  else if (value > 10) fate = "explodes";
  else if (value < 0.1) fate = "vanishes";
  else if (value > 2 || value < 0.5) fate = "drifts";
  let text;
  if (exact) {
    const alike = exact[depth] / independent[depth];
    text = `${after} the variance is ${shown(value)}: the signal ${fate}. Simulated: ${shown(simulated[depth].mean)}.`;
    if (alike > 1.25) {
      text += ` Messages that are alike make it ${shown(alike)} times what independent ones would.`;
    }
  } else {
    text =
      `${after} the simulated variance is ${shown(value)}: the signal ${fate}. Theory takes messages ` +
      `to be independent, and says ${shown(independent[depth])}; for max there is no exact prediction.`;
  }
  $("answer").textContent = text;
  $("answer").className = "answer";
}

function showChart({ independent, exact, simulated, others }) {
  const { aggr, depth } = state;
  const narrow = matchMedia("(max-width: 30rem)").matches;
  const box = { left: narrow ? 84 : 58, right: aggr.length > 3 ? (narrow ? 476 : 540) : 556, top: 14, bottom: narrow ? 288 : 306 };
  const positive = [independent, exact || [], ...others.map((o) => o.values), simulated.map((s) => s.mean)]
    .flat()
    .filter((v) => v > 0 && Number.isFinite(v));
  let low = Math.floor(Math.log10(Math.min(...positive)) - 0.15);
  let high = Math.ceil(Math.log10(Math.max(...positive)) + 0.15);
  if (high - low < 2) [low, high] = [Math.min(low, -1), Math.max(high, 1)];
  const x = (layer) => box.left + ((box.right - box.left) * layer) / depth;
  const y = (value) => {
    const place = value > 0 ? Math.max(low, Math.log10(value)) : low;
    return box.bottom - ((box.bottom - box.top) * (place - low)) / (high - low);
  };
  const line = (values) => values.map((v, k) => `${k ? "L" : "M"}${x(k).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const parts = [];
  const every = Math.ceil((high - low) / 6);
  for (let power = low; power <= high; power++) {
    if (power % every && power !== 0) continue;
    const at = y(10 ** power);
    parts.push(element("line", { x1: box.left, x2: box.right, y1: at, y2: at, class: power ? "frame" : "one" }));
    const label = element("text", { x: box.left - 8, y: at + 5, "text-anchor": "end" });
    if (power >= -2 && power <= 3) label.textContent = String(Number((10 ** power).toPrecision(1)));
    else {
      const sup = element("tspan", { dy: -6, "font-size": "0.75em" }, String(power).replace("-", "−"));
      label.append("10", sup);
    }
    parts.push(label);
  }
  const step = Math.ceil(depth / 8);
  for (let layer = 0; layer <= depth; layer += step) {
    parts.push(element("text", { x: x(layer), y: box.bottom + (narrow ? 30 : 22), "text-anchor": "middle" }, String(layer)));
  }
  const middle = (box.left + box.right) / 2;
  parts.push(element("text", { x: middle, y: box.bottom + (narrow ? 60 : 44), "text-anchor": "middle" }, "layer"));
  for (const { name, values } of others) {
    parts.push(element("path", { d: line(values), class: "other", style: `stroke: ${colourOf(name)}` }));
  }
  if (exact) parts.push(element("path", { d: line(exact), class: "exact", style: `stroke: ${colourOf(aggr)}` }));
  parts.push(element("path", { d: line(independent), class: "independent" }));
  const dots = element("g", { class: "simulated" });
  simulated.forEach(({ mean: centre, error }, layer) => {
    if (centre <= 0) return;
    const ends = [centre + 2 * error, Math.max(centre - 2 * error, 10 ** low)];
    dots.append(
      element("line", { x1: x(layer), x2: x(layer), y1: Math.max(box.top, y(ends[0])), y2: y(ends[1]) }),
      element("circle", { cx: x(layer), cy: y(centre), r: narrow ? 5 : 4 })
    );
  });
  parts.push(dots);
  // Names stand at the ends of their lines, apart from each other.
  const labels = [...others.map((o) => [o.name, o.values[depth]]), [aggr, (exact || independent)[depth]]]
    .map(([name, value]) => ({ name, at: y(value) }))
    .sort((a, b) => a.at - b.at);
  const gap = narrow ? 24 : 16;
  labels.forEach((label, k) => {
    if (k) label.at = Math.max(label.at, labels[k - 1].at + gap);
  });
  for (let k = labels.length - 1, most = box.bottom; k >= 0; k--, most -= gap) {
    labels[k].at = Math.min(labels[k].at, most);
    most = labels[k].at;
  }
  for (const { name, at } of labels) {
    parts.push(
      element("text", { x: box.right + 10, y: at + 5, class: "label", style: `fill: ${colourOf(name)}` }, name)
    );
  }
  $("chart").replaceChildren(...parts);
  showKey(Boolean(exact));
}

function showKey(exact) {
  const swatch = (inside) => {
    const picture = element("svg", { viewBox: "0 0 36 16", "aria-hidden": "true" });
    picture.append(...inside);
    return picture;
  };
  const entries = [
    ...(exact
      ? [["predicted, exact", [element("line", { x1: 0, x2: 36, y1: 8, y2: 8, style: `stroke: ${colourOf(state.aggr)}; stroke-width: 3` })]]]
      : []),
    ["predicted, independent", [element("line", { x1: 0, x2: 36, y1: 8, y2: 8, style: "stroke: var(--ink); stroke-width: 2; stroke-dasharray: 5 4" })]],
    ["simulated, ± 2 standard errors", [element("circle", { cx: 18, cy: 8, r: 5, style: "fill: var(--paper); stroke: var(--ink); stroke-width: 2" })]],
  ];
  $("key").replaceChildren(
    ...entries.map(([text, inside]) => {
      const item = document.createElement("li");
      item.append(swatch(inside), text);
      return item;
    })
  );
}

function showNumbers({ independent, exact, correlations, simulated }) {
  const rows = independent.map((value, layer) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = String(layer);
    row.append(head);
    const rho = layer && correlations[layer - 1];
    const cells = [
      shown(value),
      exact ? shown(exact[layer]) : layer ? "–" : "1",
      shown(simulated[layer].mean),
      layer && rho !== undefined ? rho.toFixed(2).replace("-", "−") : "–",
    ];
    for (const text of cells) row.insertCell().textContent = text;
    const error = document.createElement("span");
    error.className = "error";
    error.textContent = ` ± ${shown(simulated[layer].error, 2)}`;
    row.cells[3].append(error);
    return row;
  });
  $("numbers").tBodies[0].replaceChildren(...rows);
}

// What a reader does -----------------------------------------------------------------------------------

function draw(change) {
  state.graph = "drawn"; // a change makes any graph the reader's
  change();
  show();
}

function addNode(place) {
  if (graph.places.length >= MOST_NODES) return;
  draw(() => {
    graph.places = [...graph.places, place];
    if (chosen !== null) graph.edges = [...graph.edges, [chosen, graph.places.length - 1]];
    chosen = null;
  });
}

function chooseNode(i) {
  if (chosen === null || chosen === i) {
    chosen = chosen === i ? null : i;
    show();
    return;
  }
  const ends = [Math.min(chosen, i), Math.max(chosen, i)];
  const same = ([a, b]) => a === ends[0] && b === ends[1];
  draw(() => {
    graph.edges = graph.edges.some(same) ? graph.edges.filter((e) => !same(e)) : [...graph.edges, ends];
    chosen = null;
  });
}

function removeNode(i) {
  draw(() => {
    const renumbered = (end) => (end > i ? end - 1 : end);
    graph.places = graph.places.filter((_, k) => k !== i);
    graph.edges = graph.edges.filter((edge) => !edge.includes(i)).map((edge) => edge.map(renumbered));
    chosen = null;
  });
}

/** The place of a new node that is farthest from all others, for those who do not point. */
function freePlace() {
  let best = [60, 42];
  let most = -1;
  for (let x = 8; x <= 112; x += 8) {
    for (let y = 8; y <= 76; y += 8) {
      const nearest = Math.min(99, ...graph.places.map(([a, b]) => Math.hypot(a - x, b - y)));
      if (nearest > most) [most, best] = [nearest, [x, y]];
    }
  }
  return best;
}

function start() {
  const load = () => {
    if (state && location.hash === writeState(state, graph)) return; // a drawing keeps its places
    let wrong = "";
    try {
      state = readState(location.hash);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      wrong = error.message;
      state = readState("");
    }
    graph = fresh();
    chosen = null;
    show();
    if (wrong) {
      $("answer").textContent = `This link cannot be read: ${wrong}. Shown is the page as it opens.`;
      $("answer").className = "answer wrong";
    }
  };
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("controls").addEventListener("input", ({ target }) => {
    if (!target.validity.valid || target.value === "") return; // the field shows that it is wrong
    const anew = ["kind", "nodes"].includes(target.id) || (target.id === "seed" && state.graph === "random");
    if (target.id === "kind") {
      state.graph = target.value;
      if (state.graph === "drawn") {
        graph = { edges: [], places: [] };
        chosen = null;
        show();
        return;
      }
      state.nodes = Math.max(2, graph.places.length || DEFAULTS.nodes);
    } else if (target.id === "aggr" || target.id === "exponent") {
      const name = $("aggr").value;
      state.aggr = name === "power" ? `power(${Number($("exponent").value)})` : name;
    } else {
      state[target.id] = Number(target.value);
    }
    if (anew) {
      graph = fresh();
      chosen = null;
    }
    show();
  });
  $("graph").addEventListener("click", (event) => {
    const node = event.target.closest("[data-node]");
    if (node) {
      chooseNode(Number(node.dataset.node));
      return;
    }
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform($("graph").getScreenCTM().inverse());
    addNode([Math.min(117, Math.max(3, at.x)), Math.min(81, Math.max(3, at.y))]);
  });
  $("graph").addEventListener("keydown", (event) => {
    const node = event.target.closest("[data-node]");
    if (!node) return;
    const i = Number(node.dataset.node);
    if (event.key === "Enter" || event.key === " ") chooseNode(i);
    else if (event.key === "Delete" || event.key === "Backspace") removeNode(i);
    else if (event.key === "Escape" && chosen !== null) chooseNode(chosen);
    else return;
    event.preventDefault();
  });
  $("add").addEventListener("click", () => addNode(freePlace()));
  $("clear").addEventListener("click", () => draw(() => {
    graph = { edges: [], places: [] };
    chosen = null;
  }));
  addEventListener("hashchange", load);
  matchMedia("(max-width: 30rem)").addEventListener("change", show);
  $("exponent").value = 0.25;
  load();
}

globalThis.playground = {
  GRAPHS, neighbours, predictIndependent, predictExact, secondMomentOfMaximum, simulate, mean, readState,
};
if (typeof document !== "undefined") start();
