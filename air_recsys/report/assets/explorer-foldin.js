"use strict";

// Numbers of the fold-in, in double precision; a matrix is its rows, one after the other.

const TYPES = { f4: Float32Array, f8: Float64Array };

/** The numbers of an array that the page holds as base64. */
function numbersOf({ type, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return type === "f2" ? Float32Array.from(new Uint16Array(bytes.buffer), halfToNumber) : new TYPES[type](bytes.buffer);
}

function halfToNumber(half) {
  const [sign, exponent, fraction] = [half & 0x8000 ? -1 : 1, (half >> 10) & 31, half & 1023];
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

/** The lower triangle L with L L' = A, of a symmetric positive definite matrix. */
function cholesky(matrix, size) {
  const lower = Float64Array.from(matrix);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) {
      let rest = lower[row * size + column];
      for (let k = 0; k < column; k++) rest -= lower[row * size + k] * lower[column * size + k];
      if (column < row) lower[row * size + column] = rest / lower[column * size + column];
      else if (rest > 0) lower[row * size + row] = Math.sqrt(rest);
      else throw new RangeError("the equations of these ratings are not positive definite");
    }
  }
  return lower;
}

/** x with L L' x = b. */
function solveWith(lower, right) {
  const size = right.length;
  const found = Float64Array.from(right);
  for (let row = 0; row < size; row++) {
    for (let k = 0; k < row; k++) found[row] -= lower[row * size + k] * found[k];
    found[row] /= lower[row * size + row];
  }
  for (let row = size - 1; row >= 0; row--) {
    for (let k = row + 1; k < size; k++) found[row] -= lower[k * size + row] * found[k];
    found[row] /= lower[row * size + row];
  }
  return found;
}

/** The inverse of A from its L, which is symmetric. */
function inverseOf(lower, size) {
  const inverse = new Float64Array(size * size);
  for (let column = 0; column < size; column++) {
    const unit = new Float64Array(size);
    unit[column] = 1;
    inverse.set(solveWith(lower, unit), column * size);
  }
  return inverse;
}

/** M x of a square matrix. */
function times(matrix, vector) {
  const size = vector.length;
  const found = new Float64Array(size);
  for (let row = 0; row < size; row++) found[row] = dot(matrix, vector, size, row * size);
  return found;
}

/** The product of `size` numbers from `start` (of `other` from `from`) on. */
function dot(numbers, other, size, start = 0, from = 0) {
  let sum = 0;
  for (let k = 0; k < size; k++) sum += numbers[start + k] * other[from + k];
  return sum;
}

/** The leading square of a matrix, of `inner` rows. */
function leading(matrix, size, inner) {
  return Float64Array.from({ length: inner * inner }, (_, at) => matrix[Math.floor(at / inner) * size + (at % inner)]);
}

/** What `clip` makes of a score. */
function limitedScore({ limit, range }, score) {
  if (limit === "pushed") return 1 / (1 + Math.exp(-(score - 0.33) / 0.02));
  return limit === "range" ? within(score, range) : score;
}

function within(score, [low, high]) {
  return Math.min(high, Math.max(low, score));
}

/** The best items of those that are not picked, best first; of equal ones the first. */
function bestOf(scores, picked, count) {
  const left = Array.from(scores.keys()).filter((item) => !picked.has(item));
  return left.sort((a, b) => scores[b] - scores[a] || a - b).slice(0, count);
}
