// The analysis on a game's page: whose moves are looked at, and what is drawn and told of each turn.

import { chosenSides, entryOn, faultsOf, fetchAnalyses, isOver, known, lineOn, nextFault } from "./analysis.js";
import { drawChances } from "./chances.js";
import { byId, el, put, say } from "./dom.js";
import { listenForFiles } from "./drop.js";
import { faultRows, fitOf, judged, opinions, verdicts } from "./opinions.js";
import { moveCursor } from "./timeline.js";
import { percent, tame } from "./words.js";

const ALL = "";

let page = null;
let sides = [];
let faults = [];
let chosen = ALL;

/**
 * Shows the analysis whose address is `path`. `shown` is the page: `you` (whose turns it shows), `frames`, `colors()`,
 * `turn()` (the one that is shown), `go(turn)` and `redraw()`.
 */
export function startReview(path, shown) {
  page = shown;
  for (const id of ["evaluation", "analysis", "analysis-keys", "file-field"]) byId(id).hidden = false;
  document.querySelector(".home").href = "/analyse";
  listenForFiles();
  listen();
  fetchAnalyses(path, { onNews: showNews, onProgress: showWaiting });
}

const isOn = () => page !== null;

/** Draws it again, because more of the game is known. */
export const refreshReview = () => isOn() && sides.length > 0 && choose(chosen);

function showNews() {
  if (!byId("side").options.length) listSides();
  choose(chosen);
}

function listSides() {
  chosen = (known.sides.find(({ id }) => id === page.you) ?? known.sides[0]).id;
  const all = known.sides.length > 1 ? [el("option", { value: ALL }, "all snakes")] : [];
  put(byId("side"), known.sides.map(({ id, name }) => el("option", { value: id }, tame(name))), all);
}

function choose(id) {
  chosen = id;
  byId("side").value = id;
  sides = chosenSides(id);
  faults = faultsOf(sides);
  showWaiting();
  const told = { go: page.go, colors: page.colors(), isOfSeveral: sides.length > 1 };
  put(byId("verdicts"), verdicts(sides, told));
  put(byId("faults"), faultRows(faults, sides, told));
  put(byId("curves"), fitOf(sides, known.fit));
  byId("fit").hidden = !byId("curves").childElementCount;
  drawChances(byId("chances"), page.frames, { sides: known.sides, chosen: sides, faults, colors: page.colors() });
  page.redraw();
}

function showWaiting() {
  const open = known.sides.filter((side) => !isOver(side));
  const done = known.sides.reduce((sum, side) => sum + (open.includes(side) ? side.done : 1), 0);
  byId("waiting").hidden = open.length === 0;
  byId("progress").value = done / known.sides.length;
  const running = open.find(({ state }) => state === "running") ?? open[0];
  say(byId("waited"), running ? `Judging the moves of ${tame(running.name)} …` : "");
}

/** Shows what is known of a frame's turn. */
export function showReview({ turn }, index) {
  if (!isOn()) return;
  put(byId("opinions"), opinions(sides, turn, page.colors()));
  markFaults(turn);
  byId("fault-before").disabled = nextFault(faults, turn, -1) === undefined;
  byId("fault-after").disabled = nextFault(faults, turn, 1) === undefined;
  moveCursor(byId("chances"), index);
  readOut(turn);
}

/** Marks the faults of this turn in their list, and shows the first of them. */
function markFaults(turn) {
  const list = byId("faults");
  const buttons = [...list.querySelectorAll("button")];
  buttons.forEach((button, n) => {
    if (faults[n].entry.turn === turn) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
  const current = list.querySelector("[aria-current]");
  // Element.scrollIntoView would move the page, too.
  if (current) list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

/** The line to draw on a frame's board; null if none is known or wanted. */
export const lineOf = ({ turn }) => (isOn() && byId("lines").checked ? lineOn(sides, turn) : null);

/** What is said of a frame's turn to those who listen. */
export function reviewInShort({ turn }) {
  const told = sides.filter((side) => entryOn(side, turn)).map((side) => `${tame(side.name)}: ${judged(entryOn(side, turn))}`);
  return isOn() ? told.join(" ") : "";
}

/** Goes to the next (1) or the previous (-1) turn that wants a look. */
export function jump(way) {
  const turn = isOn() ? nextFault(faults, page.turn(), way) : undefined;
  if (turn !== undefined) page.go(turn);
}

/** Switches the best line on the board on or off. */
export function toggleLine() {
  if (!isOn()) return;
  byId("lines").checked = !byId("lines").checked;
  page.redraw();
}

function readOut(turn) {
  const told = sides.map((side) => ({ side, entry: entryOn(side, turn) })).filter(({ entry }) => entry);
  const chances = told.map(({ side, entry }) => el("span", {},
    el("span", { class: "dot", tone: page.colors().get(side.id) }), `${tame(side.name, 20)} ${percent(entry.chance)}`));
  put(byId("readout"), el("span", {}, `Turn ${turn}`), chances);
}

function frameAt(event) {
  const { left, width } = byId("chances").getBoundingClientRect();
  const place = Math.floor(((event.clientX - left) / width) * page.frames.length);
  return page.frames[Math.max(0, Math.min(page.frames.length - 1, place))];
}

function listen() {
  byId("side").addEventListener("change", (event) => choose(event.target.value));
  byId("lines").addEventListener("change", () => page.redraw());
  byId("fault-before").addEventListener("click", () => jump(-1));
  byId("fault-after").addEventListener("click", () => jump(1));
  byId("chances").addEventListener("click", (event) => page.go(frameAt(event).turn));
  byId("chances").addEventListener("pointermove", (event) => readOut(frameAt(event).turn));
  byId("chances").addEventListener("pointerleave", () => readOut(page.turn()));
}
