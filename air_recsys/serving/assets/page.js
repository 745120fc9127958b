"use strict";

const WIDE = 1.645; // standard deviations on both sides that hold 90 % of ratings
const LENGTH = 10, REASONS = 3;
const LEAST = 0.05; // of the largest contribution in a list: what is smaller is no reason
const place = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const rating = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const signed = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, signDisplay: "always" });
const picked = new Map(); // by JSON of the id: 1 and "1" are two items
let about = null, asked = 0, searched = 0, waiting = 0;

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

const nameOf = (row) => row.title ?? String(row.item);

async function ask(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, body === undefined ? {} : post);
  const content = await answer.json().catch(() => ({ detail: `status ${answer.status}` }));
  if (!answer.ok) throw new Error(content.detail);
  return content;
}

function tell(text, problem = false) {
  place("status").textContent = text;
  place("status").classList.toggle("problem", problem);
}

// ---------------------------------------------------------------- picking

async function search() {
  const turn = ++searched;
  const rows = await ask(`items?n=12&query=${encodeURIComponent(place("search").value)}`);
  if (turn !== searched) return; // a later one was faster
  place("found").replaceChildren(...rows.map((row) => {
    const line = element("li"), button = element("button", nameOf(row));
    button.type = "button";
    button.addEventListener("click", () => pick(row));
    line.append(button);
    return line;
  }));
  if (!rows.length) place("found").append(element("li", "Nothing found", "quiet"));
}

function pick(row) {
  const key = JSON.stringify(row.item);
  if (!picked.has(key)) picked.set(key, { ...row, rating: about.rating_scale[1] });
  showPicked();
  list();
}

function showPicked() {
  place("none").hidden = picked.size > 0;
  place("clear").hidden = picked.size === 0;
  place("picked").replaceChildren(...[...picked].map(([key, row]) => {
    const line = element("li");
    line.append(element("span", nameOf(row), "title"));
    if (about.learned_from === "ratings") line.append(ratingInput(row));
    const remove = element("button", "Remove", "remove");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${nameOf(row)}`);
    remove.addEventListener("click", () => { picked.delete(key); showPicked(); list(); });
    line.append(remove);
    return line;
  }));
}

function ratingInput(row) {
  const input = element("input"), [low, high] = about.rating_scale;
  Object.assign(input, { type: "number", min: low, max: high, step: "any", value: row.rating });
  input.setAttribute("aria-label", `Your rating of ${nameOf(row)}, ${low} to ${high}`);
  input.addEventListener("change", () => {
    if (!input.checkValidity() || input.value === "") input.value = row.rating;
    row.rating = input.valueAsNumber;
    list();
  });
  return input;
}

// ---------------------------------------------------------------- the list

async function list() {
  const turn = ++asked, rows = [...picked.values()];
  if (!rows.length) {
    place("list").replaceChildren();
    return tell("It appears with the first item that you pick.");
  }
  tell("The list is made.");
  const taken = about.learned_from === "ratings"
    ? { ratings: rows.map(({ item, rating }) => ({ item, rating })) }
    : { likes: rows.map(({ item }) => item) };
  try {
    const answer = await ask("fold-in", { ...taken, n: LENGTH, reasons: REASONS });
    if (turn !== asked) return;
    const parts = answer.items.flatMap((row) => row.reasons.map((reason) => Math.abs(reason.contribution)));
    const least = LEAST * Math.max(...parts, 0);
    place("list").replaceChildren(...answer.items.map((row) => listed(row, least)));
    const most = number.format(about.n_items);
    tell(answer.items.length ? `The best ${answer.items.length} of ${most} items.` : "No item is left.");
  } catch (error) {
    if (turn === asked) tell(error.message, true);
  }
}

function listed(row, least) {
  const line = element("li"), top = element("div", undefined, "row");
  const sure = row.deviation === null ? "" : ` ± ${rating.format(row.deviation)}`;
  const score = about.learned_from === "ratings" ? rating.format(row.score) : few.format(row.score);
  top.append(element("span", `${row.rank}. ${nameOf(row)}`, "title"));
  top.append(element("span", `${score}${sure}`, "score"));
  line.append(top);
  if (row.deviation !== null) line.append(bar(row));
  const reasons = row.reasons.filter((reason) => Math.abs(reason.contribution) > least);
  const texts = reasons.map((reason) => `${nameOf(reason)} (${signed.format(reason.contribution)})`);
  const why = texts.length ? texts.join(", ") : "it stands high with all users; what you picked changes it little";
  line.append(element("p", `Why: ${why}`, "quiet why"));
  return line;
}

function bar(row) {
  const [low, high] = about.rating_scale, span = high - low || 1;
  const at = (value) => 100 * Math.min(Math.max((value - low) / span, 0), 1);
  const [from, to] = [at(row.score - WIDE * row.deviation), at(row.score + WIDE * row.deviation)];
  const scale = element("div", undefined, "scale"), band = element("div", undefined, "band");
  const mark = element("div", undefined, "mark");
  Object.assign(band.style, { left: `${from}%`, width: `${to - from}%` });
  mark.style.left = `${at(row.score)}%`;
  scale.append(band, mark);
  scale.setAttribute("role", "img");
  scale.setAttribute("aria-label", `score ${number.format(row.score)} on the scale from ${low} to ${high}`);
  return scale;
}

// ---------------------------------------------------------------- start

async function start() {
  about = await ask("health");
  const [low, high] = about.rating_scale, learned = `learned from ${about.learned_from}`;
  place("about").textContent =
    `${about.model}, ${learned} of ${number.format(about.n_users)} users and ${number.format(about.n_items)} items`;
  if (!about.new_users) return tell(`This ${about.model} makes no lists for new users.`, true);
  place("meaning").textContent = about.deviations
    ? `A score is the rating expected on the scale from ${low} to ${high}, ± its standard deviation; the band holds 90 % of ratings.`
    : "Scores order the items; this model does not tell how sure they are.";
  const say = (error) => tell(error.message, true);
  place("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search().catch(say), 150);
  });
  place("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(waiting);
    search().then(() => place("found").querySelector("button")?.click()).catch(say);
  });
  place("clear").addEventListener("click", () => { picked.clear(); showPicked(); list(); place("search").focus(); });
  await search();
  document.documentElement.dataset.ready = Math.round(performance.now());
}

start().catch((error) => tell(error.message, true));
