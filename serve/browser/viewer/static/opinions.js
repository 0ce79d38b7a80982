// What the analysis tells beside the board: the moves of a turn, the faults, why the game was lost, and the fit.

import { el, svg } from "./dom.js";
import { entryOn } from "./analysis.js";
import { ARROWS, MOVES, percent, tame } from "./words.js";

const GROUPS = {
  duel: "duels on 11×11", 2: "two snakes", 3: "three snakes", 4: "four snakes or more",
};
const CHART = 120;
const NOT_YET = "Not judged yet.";
const isJudged = (sides) => sides.some((side) => side.analysis);

/** How a snake's move of a turn is judged, in words; "" if nothing is known. */
export function judged(entry) {
  if (!entry) return "";
  const { played, best, class: name, points_lost: points } = entry;
  if (!played) return `The move isn't recorded. Best was ${best}.`;
  if (isAsGood(entry)) return `${played} was as good as ${best}.`;
  const cost = points >= 0.5 ? `, which cost ${points.toFixed(0)} points` : "";
  return `${played} was ${worth(name)}${cost}.${played === best ? "" : ` Best was ${best}.`}`;
}

const worth = (name) => ({ best: "best", good: "good", forced: "forced" })[name] ?? `${name === "inaccuracy" ? "an" : "a"} ${name}`;

/** Whether another move than the best was played, and cost less than a point. */
const isAsGood = ({ played, best, class: name }) => played !== best && (name === "best" || name === "forced");

/** What the search thinks of every move on a turn: with bars for one snake, in a row each for several. */
export function opinions(sides, turn, colors) {
  const told = sides.map((side) => ({ side, entry: entryOn(side, turn) })).filter(({ entry }) => entry);
  if (!told.length) return [el("p", { class: "muted" }, isJudged(sides) ? "No move to choose on this turn." : NOT_YET)];
  return told.length === 1 && sides.length === 1 ? ofOne(told[0].entry) : [ofSeveral(told, colors)];
}

function ofOne(entry) {
  const heading = (text, name = "") => el("th", { scope: "col", class: name }, text);
  const unseen = (text) => el("span", { class: "unseen" }, text);
  return [
    el("p", {}, badge(entry.class), " ", judged(entry)),
    el("table", { class: "moves" },
      el("thead", {}, el("tr", {},
        heading("Move"), heading("Chance"), heading(unseen("Per cent"), "number"), heading(unseen("Mark")))),
      el("tbody", {}, MOVES.map((name, n) => {
        const move = entry.moves[name];
        const marks = [name === entry.played && "played", name === entry.best && "best", fate(move)].filter(Boolean);
        return el("tr", { class: name === entry.played ? "played" : "" },
          el("th", { scope: "row" }, `${ARROWS[n]} ${name}`),
          el("td", {}, el("span", { class: "track" }, el("span", { share: move.certain_death ? 0 : move.probability }))),
          el("td", { class: "number" }, chance(move)),
          el("td", { class: "marks small" }, marks.join(", ")));
      }))),
    el("p", { class: "small" }, `Searched ${entry.depth} turns deep.`),
  ];
}

function ofSeveral(told, colors) {
  const heading = (name, n) => el("th", { scope: "col", class: "number" },
    el("span", { "aria-hidden": "true" }, ARROWS[n]), el("span", { class: "unseen" }, name));
  return el("table", { class: "moves several" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Snake"), MOVES.map(heading))),
    el("tbody", {}, told.map(({ side, entry }) => el("tr", {},
      el("th", { scope: "row" },
        el("span", { class: "who" }, el("span", { class: "dot", tone: colors.get(side.id) }), nameOf(side)),
        el("span", { class: "small" }, entry.played ?? "?", " ", badge(entry.class))),
      MOVES.map((name) => cell(entry, name))))));
}

function cell(entry, name) {
  const marks = [name === entry.played && "played", name === entry.best && "best", fate(entry.moves[name])].filter(Boolean);
  const kinds = ["number", name === entry.best && "best", name === entry.played && "is-played"].filter(Boolean);
  return el("td", { class: kinds.join(" "), title: marks.join(", ") },
    chance(entry.moves[name]), el("span", { class: "unseen" }, ` ${marks.join(", ")}`));
}

const nameOf = (side) => el("bdi", { class: "name", title: tame(side.name) }, tame(side.name));
const badge = (name) => el("span", { class: `tag ${name}` }, name);
const chance = (move) => (move.certain_death ? "†" : percent(move.probability));

function fate({ certain_death: isDeadly, loses_within: turns }) {
  if (isDeadly) return "certain death";
  return turns == null ? null : `loses in ${turns}`;
}

/** The list of turns that want a look; `go` is called with a turn. */
export function faultRows(faults, sides, { go, colors, isOfSeveral }) {
  if (!faults.length) return el("li", { class: "muted" }, isJudged(sides) ? "None that cost 5 points or more." : NOT_YET);
  return faults.map(({ side, entry, isLost }) => {
    const isWorse = entry.played && entry.played !== entry.best && !isAsGood(entry);
    const instead = isWorse ? `${entry.played}, best ${entry.best}` : entry.played ?? "?";
    return el("li", {}, el("button", { type: "button", onclick: () => go(entry.turn) },
      el("span", { class: "when" }, `Turn ${entry.turn}`),
      badge(entry.class),
      el("span", { class: "what" },
        isOfSeveral && [el("span", { class: "dot", tone: colors.get(side.id) }), nameOf(side)],
        el("span", {}, instead)),
      el("span", { class: "cost" }, entry.points_lost >= 0.5 ? `−${entry.points_lost.toFixed(0)}` : ""),
      isLost && el("span", { class: "tag lost" }, "lost here")));
  });
}

/** How each snake's game went: the result, the turn where it was lost, and the cause; or why there is no analysis. */
export function verdicts(sides, { go, isOfSeveral }) {
  return sides.map((side) => {
    const name = isOfSeveral && el("p", { class: "who" }, nameOf(side));
    if (side.state === "refused") return [name, el("p", { class: "note warn" }, `Not analysed: ${tame(side.reason, 300)}`)];
    if (!side.analysis) return null;
    const { lost_turn: lost, lost_sentence: where, cause_sentence: cause } = side.analysis;
    const told = [...(where ?? "").split("\n"), cause].filter(Boolean).map((text) => el("p", {}, sentence(text)));
    const jump = lost != null && el("button", { type: "button", onclick: () => go(lost) }, `Go to turn ${lost}, where it was lost`);
    if (!told.length) return [name, el("p", { class: "muted" }, "This snake didn't lose.")];
    return [name, el("div", { class: "note bad" }, told), jump];
  });
}

const sentence = (text) => `${text[0].toUpperCase()}${tame(text.slice(1), 400)}${text.endsWith(".") ? "" : "."}`;

/** The curves behind the probabilities of these snakes, and how they did on games that were held out of the fit. */
export function fitOf(sides, fit) {
  const used = new Set(sides.flatMap((side) => side.analysis?.turns.map((entry) => entry.curve) ?? []));
  return Object.keys(GROUPS).filter((group) => used.has(group) && fit[group]).map((group) => {
    const { scale, offset, held_out: heldOut, bins } = fit[group];
    const curve = `chance = 1 / (1 + exp(−(score / ${scale} ${offset < 0 ? "−" : "+"} ${Math.abs(offset)})))`;
    const loss = heldOut && `On ${heldOut[0]} positions held out of the fit its loss is ${heldOut[1].toFixed(3)} nats;
      the mean result alone has ${heldOut[2].toFixed(3)}.`;
    return el("div", { class: "fit" },
      el("h3", {}, GROUPS[group]),
      el("p", { class: "small" }, `${curve}. `, loss),
      bins && el("div", { class: "calibration" }, chart(bins), binTable(bins)));
  });
}

function chart(bins) {
  const most = Math.max(...bins.map(([positions]) => positions));
  const spot = ([positions, expected, won]) => svg("circle", {
    class: "bin", cx: CHART * expected, cy: CHART * (1 - won), r: 2 + 7 * Math.sqrt(positions / most),
  });
  return svg("svg", { class: "calibration-chart", viewBox: `-1 -1 ${CHART + 2} ${CHART + 2}`, "aria-hidden": "true" },
    svg("path", { class: "frame", d: `M0 0V${CHART}H${CHART}` }),
    svg("path", { class: "diagonal", d: `M0 ${CHART}L${CHART} 0` }),
    bins.map(spot));
}

function binTable(bins) {
  const heading = (text) => el("th", { scope: "col", class: "number" }, text);
  return el("table", {},
    el("thead", {}, el("tr", {}, heading("expected"), heading("won"), heading("positions"))),
    el("tbody", {}, bins.map(([positions, expected, won]) => el("tr", {},
      [percent(expected), percent(won), positions].map((text) => el("td", { class: "number" }, String(text)))))));
}
