// What stands beside the board: the snakes, and why ours moved as it did.

import { el } from "./dom.js";
import { favourite, isAgainst, wasNotPlayed } from "./frames.js";
import { cause, MOVES, ms, percent, signed, tame } from "./words.js";

const ARROWS = ["↑", "↓", "←", "→"];
const SHOWN_ELSEWHERE = new Set(["values", "fallback"]);
const MAX_FACT = 300;

/** A list item for each snake of a frame. */
export function snakeRows(frame, game, colors) {
  return frame.board.snakes.map((snake) => {
    const [color, isYou] = [colors.get(snake.id), snake.id === frame.you];
    const name = el("bdi", { class: "name" }, tame(snake.name || snake.id));
    return el("li", { class: snake.death ? "gone" : "" },
      el("span", { class: "dot", tone: color }),
      el("span", { class: "who" }, name, isYou && el("span", { class: "tag you" }, "you")),
      el("span", { class: "length", title: "length" }, String(snake.body.length)),
      snake.death ? fate(snake, isYou && game.cause) : health(snake, color));
  });
}

const fate = (snake, why) => el("span", { class: "fate" }, `${why ? cause(why) : "out"}, turn ${snake.death}`);

function health(snake, color) {
  const share = Math.max(0, Math.min(1, snake.health / 100));
  const latency = /^[1-9][0-9]{0,5}$/.test(snake.latency) ? `, last answer after ${snake.latency} ms` : "";
  return el("span", { class: "health", title: `health ${snake.health}${latency}` },
    el("span", { class: "track", tone: color }, el("span", { share })),
    el("span", { class: "small number" }, String(snake.health)));
}

/** What is known of the decision on a frame; on the last one, of the end. */
export function reasons(frame, game, { isLast = false } = {}) {
  const end = isLast && game.ended != null ? [note(game.result === "won" ? "good" : "bad", ending(game))] : [];
  return frame.move < 0 ? end : [...end, ...warnings(frame), moveTable(frame), facts(frame, game)];
}

const note = (kind, text) => el("p", { class: `note ${kind}` }, text);

function ending({ result, cause: died }) {
  return `The game is over${result ? `: ${result}` : ""}.${died ? ` Our snake ${cause(died)}.` : ""}`;
}

function warnings(frame) {
  const late = () => `The engine played ${MOVES[frame.played]} instead: our answer came too late or got lost.`;
  return [
    frame.fallback && note("bad", `The watchdog answered, not the agent: ${tame(frame.fallback, MAX_FACT)}`),
    wasNotPlayed(frame) && note("bad", late()),
    isAgainst(frame) && note("warn", `Played ${MOVES[frame.move]}, though the policy preferred ${MOVES[favourite(frame)]}.`),
  ].filter(Boolean);
}

function moveTable(frame) {
  const heading = (text, name = "") => el("th", { scope: "col", class: name }, text);
  const unseen = (text) => el("span", { class: "unseen" }, text);
  return el("table", { class: "moves" },
    el("thead", {}, el("tr", {},
      heading("Move"),
      heading(frame.probabilities ? "Probability" : ""),
      frame.probabilities && heading(unseen("Per cent")),
      frame.values && heading("Value", "number"),
      heading(unseen("Played")))),
    el("tbody", {}, MOVES.map((name, n) => moveRow(frame, name, n))));
}

function moveRow(frame, name, n) {
  const { probabilities, values, move } = frame;
  const bar = () => el("span", { class: "track" }, el("span", { share: probabilities[n] ?? 0 }));
  return el("tr", { class: n === move ? "played" : "" },
    el("th", { scope: "row" }, `${ARROWS[n]} ${name}`),
    el("td", {}, probabilities && bar()),
    probabilities && el("td", { class: "number" }, percent(probabilities[n])),
    values && el("td", { class: "number" }, signed(values[n])),
    el("td", { class: "marks small" }, n === move ? "played" : n === favourite(frame) ? "favourite" : ""));
}

function facts(frame, game) {
  const told = Object.entries(frame.note ?? {}).filter(([key]) => !SHOWN_ELSEWHERE.has(key));
  const rows = [
    frame.value != null && ["expects", signed(frame.value)],
    ["latency", `${ms(frame.latency_ms)} of ${game.game.timeout} ms`],
    ...told.map(([key, value]) => [tame(key), tame(inWords(value), MAX_FACT)]),
  ];
  const shown = rows.filter(Boolean).map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]);
  return el("dl", { class: "facts" }, shown);
}

/** A value of an agent's note: {"a": 1, "b": [2, 3]} as "a 1, b 2 3". */
function inWords(value) {
  if (Array.isArray(value)) return value.map(inWords).join(" ");
  if (value === null || typeof value !== "object") return String(value);
  return Object.entries(value).map(([key, entry]) => `${key} ${inWords(entry)}`).join(", ");
}
