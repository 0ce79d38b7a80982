// The analysis of the game that is shown: fetched snake by snake as the server gets on, and looked up turn by turn.

import { getJson, poll } from "./api.js";

const WAIT_MS = 700;
const FAULTS = ["inaccuracy", "mistake", "blunder"];

/** What is known: each snake's `id`, `name`, `state`, `done`, `reason`, and `analysis` once there is one; and the curves. */
export const known = { sides: [], fit: {} };

/** Asks for the analyses at `path` until all are there; calls `onNews` if one more is, else `onProgress`. */
export function fetchAnalyses(path, { onNews, onProgress }) {
  return poll(async () => {
    const { snakes, fit } = await getJson(path);
    const isNews = snakes.some((snake, n) => isOver(snake) !== isOver(known.sides[n]));
    const sides = snakes.map((snake, n) => ({ ...known.sides[n], ...snake }));
    for (const [n, side] of sides.entries()) {
      if (side.state === "done" && !side.analysis) adopt(side, await getJson(`${path}/${n}`));
    }
    Object.assign(known, { sides, fit });
    if (isNews) onNews();
    else onProgress();
    return !sides.every(isOver);
  }, WAIT_MS);
}

/** Whether nothing more will be known of a snake; undefined for one that isn't known. */
export const isOver = (side) => side && (side.state === "done" || side.state === "refused");

function adopt(side, analysis) {
  side.analysis = analysis;
  side.byTurn = new Map(analysis.turns.map((entry) => [entry.turn, entry]));
}

/** The snakes that are looked at: the one with this id, or all if there is none. */
export const chosenSides = (id) => known.sides.filter((side) => !id || side.id === id);

/** What a snake's search thought on a turn; undefined if it had nothing to choose, or isn't analysed yet. */
export const entryOn = (side, turn) => side.byTurn?.get(turn);

/** The turns that want a look, in order: {side, entry, isLost} for each fault, and where a game was lost. */
export function faultsOf(sides) {
  const found = sides.filter((side) => side.analysis).flatMap((side) => side.analysis.turns
    .map((entry) => ({ side, entry, isLost: entry.turn === side.analysis.lost_turn }))
    .filter(({ entry, isLost }) => isLost || FAULTS.includes(entry.class)));
  return found.sort((a, b) => a.entry.turn - b.entry.turn);
}

/** The nearest turn of `faults` after (1) or before (-1) this one; undefined if there is none. */
export function nextFault(faults, turn, way) {
  const turns = faults.map(({ entry }) => entry.turn).filter((other) => way * (other - turn) > 0);
  return way > 0 ? turns[0] : turns.at(-1);
}

/** The best line to draw on a turn: {id, steps, played} of the snake whose move cost most; null if none is known. */
export function lineOn(sides, turn) {
  const found = sides.map((side) => ({ id: side.id, entry: entryOn(side, turn) })).filter(({ entry }) => entry?.best_line);
  found.sort((a, b) => b.entry.points_lost - a.entry.points_lost);
  return found.length ? { id: found[0].id, steps: found[0].entry.best_line, played: found[0].entry.played } : null;
}
