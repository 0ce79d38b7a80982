// What stands beside the board: the snakes, and why ours moved as it did.

import { gamePath } from "./api.js";
import { el } from "./dom.js";
import { favourite, isAgainst, wasNotPlayed } from "./frames.js";
import { ARROWS, cause, MOVES, ms, percent, signed, tame } from "./words.js";

const SHOWN_ELSEWHERE = new Set(["values", "fallback"]);
const MAX_FACT = 300;

/** A list item for each snake of a frame. */
export function snakeRows(frame, game, colors) {
  const { snakes } = frame.board;
  return snakes.map((snake) => {
    const [color, isYou] = [colors.get(snake.id), snake.id === frame.you];
    const name = nameOf(snake, game, isYou ? null : frame);
    return el("li", { class: snake.death ? "gone" : "" },
      el("span", { class: "dot", tone: color }),
      el("span", { class: "who" }, name, isYou && el("span", { class: "tag you" }, "you")),
      el("span", { class: "length", title: "length" }, String(snake.body.length)),
      look(snake),
      snake.death ? fate(snake, snakes) : health(snake, color));
  });
}

/** A snake's name; with a frame, for one whose thoughts are known, too, a link to the same turn as that one saw it. */
function nameOf(snake, game, frame) {
  const name = el("bdi", { class: "name" }, tame(snake.name || snake.id));
  const body = frame && game.bodies.find((other) => other.you === snake.id);
  if (!body) return name;
  const turn = game.ended == null ? "" : `#turn=${frame.turn}`;
  const href = `${gamePath("/watch", game.id, body.snake)}?you=${encodeURIComponent(body.you)}${turn}`;
  return el("a", { href, class: "as", title: "the game as this snake saw it" }, name);
}

/** The head and tail that a snake chose, by name: all are drawn alike here. */
function look({ customizations }) {
  const chosen = ["head", "tail"].map((part) => [part, tame(customizations?.[part])]);
  const told = chosen.filter(([, name]) => name && name !== "default").map((pair) => pair.join(" "));
  return told.length > 0 && el("span", { class: "look small" }, told.join(", "));
}

function fate({ id, death }, snakes) {
  const killer = death.by !== id && snakes.find((snake) => snake.id === death.by);
  const how = `${death.cause ? cause(death.cause) : "out"}${killer ? ` (${tame(killer.name || killer.id)})` : ""}`;
  const when = death.first === death.last ? `turn ${death.first}` : `between turns ${death.first} and ${death.last}`;
  return el("span", { class: "fate" }, `${how}, ${when}`);
}

function health(snake, color) {
  const share = Math.max(0, Math.min(1, snake.health / 100));
  const latency = /^[1-9][0-9]{0,5}$/.test(snake.latency) ? `, last answer after ${snake.latency} ms` : "";
  return el("span", { class: "health", title: `health ${snake.health}${latency}` },
    el("span", { class: "track", tone: color }, el("span", { share })),
    el("span", { class: "small number" }, String(snake.health)));
}

/** What is known of the decision on a frame; on the last one, of the end. */
export function reasons(frame, game, { isLast = false } = {}) {
  const end = isLast && game.ended != null ? [note(game.result === "won" ? "good" : "bad", ending(frame, game))] : [];
  const silence = unknown(frame).map((text) => note("warn", text));
  if (frame.move >= 0) return [...end, ...silence, ...warnings(frame), moveTable(frame), facts(frame, game)];
  return [...end, ...silence, isDead(frame) && el("p", { class: "muted" }, "This snake is dead and decides no more.")];
}

const isDead = ({ you, board }) => board.snakes.some((snake) => snake.id === you && snake.death);

/** Where this server's knowledge of the game has a hole, in words. */
function unknown(frame) {
  const { turn, skipped } = frame;
  if (!skipped) return [];
  const turns = skipped === 1 ? `Turn ${turn - 1} is` : `Turns ${turn - skipped} to ${turn - 1} are`;
  const why = isDead(frame) ? "an engine tells a dead snake only the end" : "no request for them arrived";
  return [`${turns} not known: ${why}.`];
}

const note = (kind, text) => el("p", { class: `note ${kind}` }, text);

function ending({ turn, you, board }, { result, cause: died, is_end_known: isKnown, is_whole: isWhole }) {
  if (!isKnown) return `No request arrived after turn ${turn}, so the end of this game is not known.`;
  const own = isWhole ? tame(board.snakes.find((snake) => snake.id === you)?.name) : "Our snake";
  return `The game is over${result ? `: ${result}` : ""}.${died ? ` ${own} ${cause(died)}.` : ""}`;
}

function warnings(frame) {
  const late = () => `The engine played ${MOVES[frame.played]} instead: our answer came too late or got lost.`;
  return [
    frame.fallback && note("bad", `The watchdog answered, not the agent: ${tame(frame.fallback, MAX_FACT)}`),
    frame.failure && note("bad", `The request failed, so the last move was played again: ${tame(frame.failure, MAX_FACT)}`),
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
