"use strict";

/** The fold-in of one new user under AIR's objective: least squares with a penalty. */
class FoldIn {
  constructor(data) {
    Object.assign(this, data);
    for (const [name, value] of Object.entries(data)) if (value?.base64) this[name] = numbersOf(value);
    [this.size, this.rank] = data.factors.shape;
  }

  /** Take in picks {item, rating}; the scores are those before `clip`. */
  solve(picks) {
    const hasBias = this.bias_decay !== null;
    this.picks = picks;
    this.matrix = this.equations();
    const right = new Float64Array(this.rank + hasBias);
    for (const { item, rating } of picks) {
      const rest = rating - this.offsets[item];
      for (let k = 0; k < this.rank; k++) right[k] += rest * this.factors[item * this.rank + k];
      if (hasBias) right[this.rank] += rest;
    }
    const solved = solveWith(cholesky(hasBias ? this.bordered() : this.matrix, right.length), right);
    this.lower = cholesky(this.matrix, this.rank);
    this.lowerAlone = null;
    this.user = solved.subarray(0, this.rank);
    this.bias = hasBias ? solved[this.rank] : 0;
    return Float64Array.from({ length: this.size }, (_, item) => this.offsets[item] + this.bias + this.personal(item));
  }

  personal(item) {
    return dot(this.factors, this.user, this.rank, item * this.rank);
  }

  /** The equations of the factors, the bias held fixed. */
  equations() {
    const { rank } = this;
    const matrix = Float64Array.from(this.base);
    for (const { item } of this.picks) {
      for (let row = 0; row < rank; row++) {
        const weighted = (1 - this.unobserved) * this.factors[item * rank + row];
        for (let column = 0; column < rank; column++) matrix[row * rank + column] += weighted * this.factors[item * rank + column];
      }
    }
    return matrix;
  }

  /** The same with the bias as a last row: its penalty, and that of pairs without a rating, which it is no part of. */
  bordered() {
    const size = this.rank + 1;
    const whole = new Float64Array(size * size);
    for (let row = 0; row < this.rank; row++) whole.set(this.matrix.subarray(row * this.rank, (row + 1) * this.rank), row * size);
    const weight = 1 - this.unobserved;
    for (let k = 0; k < this.rank; k++) {
      const sum = weight * this.picks.reduce((total, { item }) => total + this.factors[item * this.rank + k], 0);
      whole[k * size + this.rank] = whole[this.rank * size + k] = sum;
    }
    whole[size * size - 1] = this.bias_decay + weight * this.picks.length;
    return whole;
  }

  /** An objective knows no deviations. */
  deviation() {
    return null;
  }

  /** What a score comes from: where it starts, and what each pick adds. */
  reasons(item) {
    const target = this.factors.subarray(item * this.rank, (item + 1) * this.rank);
    const reach = solveWith(this.lower, target);
    const picks = Float64Array.from(this.picks, ({ item: own, rating }) => {
      return (rating - this.offsets[own] - this.bias) * dot(this.factors, reach, this.rank, own * this.rank);
    });
    const rest = this.personal(item) - picks.reduce((a, b) => a + b, 0);
    const parts = { mean: this.mean, user: this.bias, item: this.offsets[item] - this.mean, rest };
    return { picks, pattern: 0, parts, edges: this.edge_strength ? () => this.edgesFor(target) : null };
  }

  /** What passes each edge of the item graph from one end to the other, for the score of an item: [to, from, value]. */
  edgesFor(target) {
    this.lowerAlone ??= cholesky(this.matrix.map((value, at) => value + this.pull[at]), this.rank);
    const alone = solveWith(this.lowerAlone, target);
    const passed = (to, from, weight) => {
      return [to, from, this.edge_strength * weight * dot(this.factors, alone, this.rank, to * this.rank) * this.personal(from)];
    };
    const count = this.edges.length / 3;
    return Array.from({ length: count }, (_, at) => {
      const [one, other, weight] = [this.edges[at], this.edges[count + at], this.edges[2 * count + at]];
      return [passed(one, other, weight), passed(other, one, weight)];
    }).flat();
  }
}
