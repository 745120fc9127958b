"use strict";

/**
 * A picture of many thin lines, drawn pixel by pixel: without a graphics card a stroke of the canvas costs several times
 * as much. Smooth edges as in Wu, An efficient antialiasing technique, 1991. Colours are pairs: red and blue, green.
 */
class LinePicture {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.words = new Uint32Array(this.image.data.buffer); // alpha, blue, green, red, on little-endian machines
  }

  clear({ redBlue, green }) {
    this.words.fill(0xff000000 | redBlue | green);
  }

  /** Draw a line over what is there; `opacity` is a whole number up to 256. */
  line(x0, y0, x1, y1, { redBlue, green }, opacity) {
    const steep = Math.abs(y1 - y0) > Math.abs(x1 - x0);
    const { width, words } = this;
    const [length, breadth] = steep ? [this.height, width] : [width, this.height];
    let [from, side, to, end] = steep ? [y0, x0, y1, x1] : [x0, y0, x1, y1]; // along the longer extent, and across
    if (from > to) [from, side, to, end] = [to, end, from, side];
    const slope = to > from ? (end - side) / (to - from) : 0;
    const [low, high] = insideOf(from, to, side, slope, length - 1, breadth - 2);
    const first = Math.ceil(low);
    const step = Math.round(65536 * slope);
    let at = Math.round(65536 * (side + slope * (first - from)));
    const along = steep ? width : 1;
    const across = steep ? 1 : width;
    let base = first * along;
    for (let left = Math.floor(high) - first; left >= 0; left--, base += along, at += step) {
      const index = base + Math.imul(at >> 16, across);
      const far = (opacity * ((at >> 8) & 255)) >> 8;
      const near = opacity - far;
      words[index] = mixed(words[index], redBlue, green, near);
      words[index + across] = mixed(words[index + across], redBlue, green, far);
    }
  }
}

/** The part of a line on which two pixels side by side are in the picture. */
function insideOf(from, to, side, slope, longest, highest) {
  let [low, high] = [Math.max(0, from), Math.min(longest, to)];
  if (slope === 0) return side < 0 || side > highest ? [1, 0] : [low, high];
  const [one, two] = [from - side / slope, from + (highest - side) / slope];
  low = Math.max(low, Math.min(one, two) + 1e-3);
  high = Math.min(high, Math.max(one, two) - 1e-3);
  return [low, high];
}

/** A pixel with another colour over it; red and blue are reckoned in one number, 16 bits apart. */
function mixed(word, redBlue, green, opacity) {
  const rest = 256 - opacity;
  const pair = (Math.imul(word & 0xff00ff, rest) + Math.imul(redBlue, opacity) + 0x800080) >>> 8;
  const single = (Math.imul(word & 0xff00, rest) + Math.imul(green, opacity) + 0x8000) >>> 8;
  return 0xff000000 | (pair & 0xff00ff) | (single & 0xff00);
}

/** A colour of the style sheet, "#rrggbb" or "r, g, b", as a pair of numbers. */
function colorPair(text) {
  const hex = /^#([\da-f]{6})$/i.exec(text);
  const parts = hex ? [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16)) : text.split(",").map(Number);
  return { redBlue: (parts[2] << 16) | parts[0], green: parts[1] << 8 };
}
