"use strict";

/** The lists of one new user of a GraphRanker: a regression of the items on each other, and trained factors. */
class FoldIn {
  constructor(data) {
    Object.assign(this, data);
    for (const [name, value] of Object.entries(data)) if (value?.base64) this[name] = numbersOf(value);
    this.rank = data.targets ? data.targets.shape[1] : 0;
    this.size = data.left ? data.left.shape[0] : data.targets.shape[0];
  }

  /** Take in picks {item}; scores order the items, and are no ratings. */
  solve(picks) {
    this.picks = picks.map(({ item }) => item);
    const zero = new Float64Array(this.size);
    this.regressed = this.regression ? ofLength(zero.map((_, item) => this.products(item).reduce((a, b) => a + b, 0))) : null;
    this.factored = this.targets ? ofLength(this.exponentials()) : null;
    return zero.map((_, item) => this.part("regressed", "regression_weight", item) + this.part("factored", "factor_weight", item));
  }

  part(name, weight, item) {
    return this[name] ? this[weight] * this[name].scores[item] : 0;
  }

  /** What each pick adds to the regression of an item, before the length. */
  products(item) {
    return this.picks.map((own) => {
      const [row, column] = [Math.max(own, item), Math.min(own, item)];
      return this.left[own] * this.regression[(row * (row + 1)) / 2 + column] * this.right[item];
    });
  }

  /** exp(cosine / temperature) of all items, over the largest, times their gains. */
  exponentials() {
    const { rank, picks } = this;
    const user = new Float64Array(rank);
    for (const own of picks) for (let k = 0; k < rank; k++) user[k] += this.sources[own * rank + k];
    this.length = Math.max(Math.sqrt(dot(user, user, rank)), 1e-38);
    this.cosines = Float64Array.from({ length: this.size }, (_, item) => dot(this.targets, user, rank, item * rank) / this.length);
    const largest = this.cosines.reduce((a, b) => Math.max(a, b), -Infinity);
    return this.cosines.map((cosine, item) => Math.exp((cosine - largest) / this.temperature) * this.gains[item]);
  }

  /** Scores are no ratings, so they have no deviations. */
  deviation() {
    return null;
  }

  /** What each pick adds to a score, and what an item that is like none of them would have. */
  reasons(item) {
    const picks = new Float64Array(this.picks.length);
    if (this.regressed) {
      const scale = this.regression_weight / this.regressed.length;
      this.products(item).forEach((value, pick) => (picks[pick] += scale * value));
    }
    const none = this.factored ? this.addFactors(picks, item) : 0;
    return { picks, pattern: 0, parts: { none }, edges: null };
  }

  addFactors(picks, item) {
    const score = this.part("factored", "factor_weight", item);
    const shares = this.picks.map((own) => dot(this.sources, this.targets, this.rank, own * this.rank, item * this.rank) / this.length);
    const total = this.cosines[item] / this.temperature;
    const floor = score * Math.exp(-total);
    const slope = (floor * (total ? Math.expm1(total) / total : 1)) / this.temperature;
    shares.forEach((share, pick) => (picks[pick] += slope * share));
    return floor;
  }
}

/** Scores over their length, and that length. */
function ofLength(scores) {
  const length = Math.max(Math.sqrt(dot(scores, scores, scores.length)), 1e-38);
  return { scores: scores.map((score) => score / length), length };
}
