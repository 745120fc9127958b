"use strict";

const STEPS = { few: 160, many: 60, size: 3000 }; // of the forces, in communities up to this size and in larger ones
const PUSHED = 5; // random members that one is pushed from, in each step
const PUSH = 20;
const LONGEST = 4; // of a push
const FILLED = 0.92; // of the radius

/**
 * Places of the members of a community in a disc of radius 1 around their mean: forces along the edges and away from
 * random others, from a start that smooths random numbers over the edges. The same community has the same places.
 * Source of the forces: McInnes, Healy, Melville, UMAP, arXiv:1802.03426.
 */
function placesOf(graph, members) {
  const edges = edgesAmong(graph, members);
  const random = randomNumbers(members.length);
  const [x, y] = [0, 1].map(() => smoothed(Float64Array.from(members, () => random() - 0.5), edges));
  const steps = members.length > STEPS.size ? STEPS.many : STEPS.few;
  for (let step = 0; step < steps; step++) moveOnce(x, y, edges, random, step / steps);
  return inDisc(x, y);
}

/** Both ends of the edges within a community, as numbers of its members, and how they pull, from 0 to 1. */
function edgesAmong(graph, members) {
  const place = new Int32Array(graph.size).fill(-1);
  members.forEach((node, index) => (place[node] = index));
  const [heads, tails, pulls] = [[], [], []];
  const strongest = (node) => graph.step.weights[graph.edges[graph.starts[node]]];
  members.forEach((node, index) => {
    for (let at = graph.starts[node]; at < graph.starts[node + 1]; at++) {
      const other = place[graph.others[at]];
      if (other <= index) continue; // outside, or met from its other end
      heads.push(index);
      tails.push(other);
      const most = Math.max(strongest(node), strongest(graph.others[at]));
      pulls.push(Math.sqrt(graph.step.weights[graph.edges[at]] / most));
    }
  });
  const degrees = new Float64Array(members.length);
  for (const ends of [heads, tails]) for (const end of ends) degrees[end]++;
  return { heads: Int32Array.from(heads), tails: Int32Array.from(tails), pulls: Float64Array.from(pulls), degrees };
}

/** Mean values of neighbours, again and again, as ranks spread over [-2, 2]. */
function smoothed(values, { heads, tails, pulls }) {
  let now = values;
  for (let round = 0; round < 20; round++) {
    const next = now.map((value) => 0.5 * value);
    const weights = new Float64Array(now.length).fill(0.5);
    for (let edge = 0; edge < heads.length; edge++) {
      next[heads[edge]] += pulls[edge] * now[tails[edge]];
      next[tails[edge]] += pulls[edge] * now[heads[edge]];
      weights[heads[edge]] += pulls[edge];
      weights[tails[edge]] += pulls[edge];
    }
    now = next.map((value, index) => value / weights[index]);
  }
  const order = [...now.keys()].sort((a, b) => now[a] - now[b] || a - b);
  order.forEach((index, rank) => (now[index] = 4 * (rank / order.length - 0.5)));
  return now;
}

/** One step of the forces; `done` is how much of them is over. */
function moveOnce(x, y, { heads, tails, pulls, degrees }, random, done) {
  const size = x.length;
  const [byX, byY] = [new Float64Array(size), new Float64Array(size)];
  const rate = 0.25 * (1 - done);
  for (let edge = 0; edge < heads.length; edge++) {
    const [head, tail] = [heads[edge], tails[edge]];
    const [alongX, alongY] = [x[tail] - x[head], y[tail] - y[head]];
    const force = (4 * pulls[edge]) / (1 + alongX * alongX + alongY * alongY);
    byX[head] += (force * alongX) / degrees[head];
    byY[head] += (force * alongY) / degrees[head];
    byX[tail] -= (force * alongX) / degrees[tail];
    byY[tail] -= (force * alongY) / degrees[tail];
  }
  const push = (Math.min(1, 2 * done) * PUSH) / PUSHED;
  const held = (force) => Math.max(-LONGEST, Math.min(LONGEST, force));
  for (let index = 0; index < size; index++) {
    for (let other = 0; other < PUSHED; other++) {
      const from = Math.floor(random() * size);
      const [awayX, awayY] = [x[index] - x[from], y[index] - y[from]];
      const squared = awayX * awayX + awayY * awayY;
      const force = 2 / ((0.1 + squared) * (1 + squared));
      byX[index] += push * held(force * awayX);
      byY[index] += push * held(force * awayY);
    }
  }
  for (let index = 0; index < size; index++) {
    x[index] += rate * byX[index];
    y[index] += rate * byY[index];
  }
}

/** Places around their mean; the ranks of the distances from it fill a disc evenly. */
function inDisc(x, y) {
  centre(x, y);
  const distance = x.map((value, index) => Math.hypot(value, y[index]));
  const order = [...distance.keys()].sort((a, b) => distance[a] - distance[b] || a - b);
  order.forEach((index, rank) => {
    const wanted = FILLED * Math.sqrt((rank + 0.5) / order.length);
    const factor = distance[index] > 0 ? wanted / distance[index] : 0;
    x[index] *= factor;
    y[index] *= factor;
  });
  centre(x, y);
  return { x, y };
}

function centre(...axes) {
  for (const values of axes) {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    values.forEach((value, index) => (values[index] = value - mean));
  }
}

/** Random numbers in [0, 1), the same for the same seed: mulberry32 of Tommy Ettinger. */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
