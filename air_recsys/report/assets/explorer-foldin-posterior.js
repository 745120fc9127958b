"use strict";

const ROUNDS = 5; // of mean and scale of the noise in turn, as in Python
const COUNTS = 10; // prior weight of the scale

/** The fold-in of one new user by a posterior: a mean and a covariance for each draw of the items. */
class FoldIn {
  constructor(data) {
    Object.assign(this, data);
    for (const [name, value] of Object.entries(data)) if (value?.base64) this[name] = numbersOf(value);
    [this.draws, this.size, this.width] = data.items.shape;
    [this.trained, this.features] = data.basis.shape;
    this.rank = this.width - 1;
    this.columns = data.factors ? data.factors.shape[1] : this.rank;
    this.triangle = (this.width * (this.width + 1)) / 2;
  }

  /** Take in picks {item, rating}; the scores are those before `clip`. */
  solve(picks) {
    const values = picks.map(({ item, rating }) => (rating - (this.shifts ? this.shifts[item] : 0) - this.mean) / this.unit);
    const items = picks.map(({ item }) => item);
    const features = this.featuresOf(items);
    this.rows = Array.from({ length: this.draws }, (_, draw) => this.row(draw, items, values, features));
    this.picked = items;
    this.values = values;
    this.ownNoise = average(this.rows.map(({ scale }) => 1 / scale));
    this.bias = average(this.rows.map(({ mean }) => mean[this.rank]));
    this.states = this.errors ? this.rows.map((row, draw) => this.drawn(row, draw)) : null;
    this.equations = this.rows.map((row, draw) => this.equationsOf(row, draw));
    this.user = this.factors ? this.mapped() : this.rows[0].mean.subarray(0, this.rank);
    this.places = new Map(items.map((item, at) => [item, at]));
    this.carried = this.near_starts ? this.coefficients(picks) : null;
    return Float64Array.from({ length: this.size }, (_, item) => this.score(item) + this.near(item).reduce((a, b) => a + b, 0));
  }

  /** By pick, the coefficients of what the factors leave: (1 + t / 2 + t / 2 N + F F' + b) a = r, as all are of now. */
  coefficients(picks) {
    const size = picks.length;
    const half = this.strength / 2;
    const left = picks.map(({ item, rating }) => rating - (this.shifts ? this.shifts[item] : 0) - this.score(item));
    const matrix = new Float64Array(size * size);
    const { places } = this;
    picks.forEach(({ item }, row) => {
      picks.forEach(({ item: other }, column) => (matrix[row * size + column] = this.likeness(item, other) + (this.lasting || 0)));
      matrix[row * size + row] += 1 + half;
      if (item >= this.trained) return; // an item that came later has no edges of its own
      this.edgesOf(item, (other, weight) => places.has(other) && (matrix[row * size + places.get(other)] += half * weight));
    });
    return solveWith(cholesky(matrix, size), left);
  }

  edgesOf(item, use) {
    for (let at = this.near_starts[item]; at < this.near_starts[item + 1]; at++) use(this.near_items[at], this.near_weights[at]);
  }

  /** The product of the features of two items. */
  likeness(item, other) {
    const width = this.near_features ? this.near_features.length / this.size : 0;
    return width ? dot(this.near_features, this.near_features, width, item * width, other * width) : 0;
  }

  /** What the graph and features carry from each pick to an item. */
  near(item) {
    const found = new Float64Array(this.picked.length);
    if (!this.carried) return found;
    this.picked.forEach((other, at) => (found[at] = this.likeness(item, other) * this.carried[at]));
    this.edgesOf(item, (other, weight) => {
      const at = this.places.get(other);
      if (at !== undefined) found[at] += (this.strength / 2) * weight * this.carried[at];
    });
    return found;
  }

  itemAt(draw, item) {
    return (draw * this.size + item) * this.width;
  }

  /** What a score starts from, and what the user's factors add to it, in the unit of the ratings. */
  offset(item) {
    return this.factors ? this.biases[item] : this.unit * this.items[this.itemAt(0, item) + this.rank];
  }

  personal(item) {
    if (this.factors) return dot(this.factors, this.user, this.columns, item * this.columns);
    return this.unit * dot(this.items, this.user, this.rank, this.itemAt(0, item));
  }

  score(item) {
    return this.mean + this.unit * this.bias + this.offset(item) + this.personal(item);
  }

  /** Features of the pattern of the picks: singular vectors, the degree, and a constant. */
  featuresOf(items) {
    const seen = items.filter((item) => item < this.trained);
    const degree = Math.max(seen.length, 1);
    const sums = new Float64Array(this.features + 2);
    for (const item of seen) {
      for (let k = 0; k < this.features; k++) sums[k] += this.basis[item * this.features + k] * degree ** (-1 / 3);
    }
    sums[this.features] = Math.log(degree) - this.log_degree;
    sums[this.features + 1] = 1;
    return sums;
  }

  /** The Gaussian of the user for one draw, and the scale of its noise. */
  row(draw, items, values, features) {
    const { width, rank } = this;
    const count = features.length;
    const precision = this.precisions.subarray(draw * width * width, (draw + 1) * width * width);
    const says = Float64Array.from({ length: width }, (_, k) => {
      let sum = 0;
      for (let f = 0; f < count; f++) sum += features[f] * this.weights[(draw * count + f) * width + k];
      return sum;
    });
    const system = this.system(draw, items, values);
    const prior = times(precision, says);
    let [scale, mean, covariance] = [1, null, null];
    for (let step = 0; step < ROUNDS; step++) {
      const lower = cholesky(system.matrix.map((value, at) => precision[at] + scale * value), width);
      mean = solveWith(lower, prior.map((value, k) => value + scale * system.right[k]));
      covariance = inverseOf(lower, width);
      const errors = system.squares - 2 * dot(system.right, mean, width) + dot(mean, times(system.matrix, mean), width);
      scale = (COUNTS + items.length) / (COUNTS + Math.max(0, errors + dot(system.matrix, covariance, width * width)));
    }
    return { mean, covariance, scale, says, precision, rank };
  }

  /** A, h and s of the equations: sums over the picks. */
  system(draw, items, values) {
    const { width, rank } = this;
    const [matrix, right] = [new Float64Array(width * width), new Float64Array(width)];
    let squares = 0;
    items.forEach((item, at) => {
      const weight = 1 / this.noise[item];
      const { moments, withBias, input, bias, ofBias } = this.momentsOf(draw, item);
      for (let k = 0; k < width * width; k++) matrix[k] += weight * moments[k];
      for (let k = 0; k < width; k++) right[k] += weight * (values[at] * input[k] - withBias[k]);
      squares += weight * (values[at] ** 2 - 2 * values[at] * bias + ofBias);
    });
    return { matrix, right, squares, rank };
  }

  /** E[g g'], E[c g] and E[c^2] of one item, g = (q, 1). */
  momentsOf(draw, item) {
    const { width, rank } = this;
    const start = this.itemAt(draw, item);
    const bias = this.items[start + rank];
    const input = Float64Array.from({ length: width }, (_, k) => (k < rank ? this.items[start + k] : 1));
    const covariance = this.covarianceOf(item);
    const moments = new Float64Array(width * width);
    const withBias = input.map((value) => bias * value);
    for (let row = 0; row < width; row++) {
      for (let column = 0; column < width; column++) {
        const both = row < rank && column < rank && covariance ? covariance[row * width + column] : 0;
        moments[row * width + column] = input[row] * input[column] + both;
      }
      if (covariance && row < rank) withBias[row] += covariance[row * width + rank];
    }
    return { moments, withBias, input, bias, ofBias: bias ** 2 + (covariance ? covariance[width * width - 1] : 0) };
  }

  /** The covariance of one item, or null for draws, which have none. */
  covarianceOf(item) {
    if (!this.covariances) return null;
    const { width } = this;
    const whole = new Float64Array(width * width);
    let at = item * this.triangle;
    for (let row = 0; row < width; row++) {
      for (let column = row; column < width; column++) {
        whole[row * width + column] = whole[column * width + row] = this.covariances[at++];
      }
    }
    return whole;
  }

  /** The factors of the model from those of the draws. */
  mapped() {
    const { rank, columns } = this;
    return Float64Array.from({ length: columns }, (_, column) => average(this.rows.map(({ mean }, draw) => {
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += mean[k] * this.maps[(draw * rank + k) * columns + column];
      return sum;
    })));
  }

  /** A draw of the user, with the numbers that Python draws a single new user with. */
  drawn({ mean, covariance }, draw) {
    const { width } = this;
    const lower = cholesky(covariance, width);
    return mean.map((value, row) => value + dot(lower, this.errors, row + 1, row * width, draw * width));
  }

  /** The standard deviation of a new rating. */
  deviation(item) {
    const variance = this.states ? this.varianceOfDraws(item) : this.varianceOfMeans(item);
    const picks = this.picked.length;
    const uncertain = picks ? (COUNTS + picks) / (COUNTS + picks - 2) : 1; // E[1 / t] E[t]
    const noise = this.noise[item] * this.ownNoise * uncertain;
    return Math.sqrt(this.unit ** 2 * (Math.max(0, variance) + noise) + (this.spreads ? this.spreads[item] : 0));
  }

  varianceOfDraws(item) {
    const scores = this.states.map((state, draw) => {
      const start = this.itemAt(draw, item);
      return dot(this.items, state, this.rank, start) + state[this.rank] + this.items[start + this.rank];
    });
    const mean = average(scores);
    return average(scores.map((score) => (score - mean) ** 2));
  }

  varianceOfMeans(item) {
    const { width, rank } = this;
    const { mean, covariance } = this.rows[0];
    const own = Float64Array.from({ length: width }, (_, k) => (k < rank ? mean[k] : 1));
    const { moments } = this.momentsOf(0, item);
    return dot(own, times(this.covarianceOf(item), own), width) + dot(covariance, moments, width * width);
  }

  /** What a score comes from: where it starts, what each pick adds, and what the choice of items says. */
  reasons(item) {
    const found = { picks: new Float64Array(this.picked.length), pattern: 0, edges: null };
    this.equations.forEach((each, draw) => this.addReasons(found, each, draw, item));
    found.picks = found.picks.map((value) => (this.unit * value) / this.draws);
    found.pattern *= this.unit / this.draws;
    const rest = this.personal(item) - found.pattern - found.picks.reduce((a, b) => a + b, 0);
    return { ...found, near: this.near(item), parts: { mean: this.mean, user: this.unit * this.bias, item: this.offset(item), rest } };
  }

  /** The equations of the factors with the bias held fixed: L, what each pick adds on the right, and the prior. */
  equationsOf({ says, precision }, draw) {
    const { width, rank, bias } = this;
    const matrix = precision.slice();
    const summands = this.picked.map((item, pick) => {
      const confidence = 1 / (this.noise[item] * this.ownNoise);
      const { moments, input, withBias } = this.momentsOf(draw, item);
      for (let k = 0; k < width * width; k++) matrix[k] += confidence * moments[k];
      return input.map((value, k) => confidence * ((this.values[pick] - bias) * value - withBias[k]));
    });
    const prior = times(precision, says).map((value, row) => value - bias * precision[row * width + rank]);
    return { lower: cholesky(leading(matrix, width, rank), rank), summands, prior };
  }

  addReasons(found, { lower, summands, prior }, draw, item) {
    const start = this.itemAt(draw, item);
    const reach = solveWith(lower, this.items.subarray(start, start + this.rank));
    summands.forEach((summand, pick) => (found.picks[pick] += dot(summand, reach, this.rank)));
    found.pattern += dot(prior, reach, this.rank);
  }
}

function average(numbers) {
  return numbers.reduce((a, b) => a + b, 0) / numbers.length;
}
