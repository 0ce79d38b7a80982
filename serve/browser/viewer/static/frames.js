// A game as a list of frames: boards with the dead among the living, and what was decided on each.

import { MOVES } from "./words.js";

const STEPS = [[0, 1], [0, -1], [-1, 0], [1, 0]];

/** Adds the turns that a server answered with to the frames. */
export function addTurns(frames, turns) {
  for (const turn of turns) {
    const before = frames.at(-1);
    const frame = { ...turn, move: MOVES.indexOf(turn.move), board: { ...turn.board, turn: turn.turn } };
    frame.board.snakes = withTheDead(before, turn);
    frame.skipped = before ? turn.turn - before.turn - 1 : 0;
    frames.push(frame);
    if (before) before.played = playedMove(before, frame);
  }
}

/**
 * All snakes in the order in which they were first seen. Who is not on the board any more is dead: {first, last} are the turns
 * between which it died; `cause` and `by` (an id) are "" if the server doesn't know them.
 */
function withTheDead(before, { turn, board, eliminated }) {
  const known = before?.board.snakes ?? [];
  const now = new Map(board.snakes.map((snake) => [snake.id, snake]));
  const ids = new Set(known.map((snake) => snake.id));
  const told = new Map((eliminated ?? []).map((fate) => [fate.id, toldDeath(fate)]));
  const death = (snake) => told.get(snake.id) ?? snake.death ?? { first: before.turn + 1, last: turn, cause: "", by: "" };
  const old = known.map((snake) => now.get(snake.id) ?? { ...snake, death: death(snake) });
  return [...old, ...board.snakes.filter((snake) => !ids.has(snake.id))];
}

/** A death in a recording's form as the pages know it. */
export function toldDeath({ eliminatedOnTurn: turn, eliminatedCause: cause, eliminatedBy: by }) {
  return { first: turn, last: turn, cause: cause === "unknown" ? "" : cause, by };
}

/** The move that the engine made for us between two frames; null if we can't tell, because we died or frames are missing. */
function playedMove(before, after) {
  const head = ({ board, you }) => board.snakes.find((snake) => snake.id === you && !snake.death)?.body[0];
  const [old, now] = [head(before), head(after)];
  if (!old || !now || after.turn !== before.turn + 1) return null;
  const { width, height } = before.board;
  const leadsThere = ([dx, dy]) => (old.x + dx + width) % width === now.x && (old.y + dy + height) % height === now.y;
  const move = STEPS.findIndex(leadsThere);
  return move < 0 ? null : move;
}

/** Whether the engine made another move than the one we answered with: our answer was late or lost. */
export const wasNotPlayed = (frame) => frame.move >= 0 && frame.played != null && frame.played !== frame.move;

/** The move that the agent thought likeliest; -1 if it told no probabilities. */
export const favourite = ({ probabilities }) => (probabilities ? probabilities.indexOf(Math.max(...probabilities)) : -1);

/** Whether the answer is another move than the one that the agent thought likeliest. */
export const isAgainst = (frame) => frame.move >= 0 && favourite(frame) >= 0 && favourite(frame) !== frame.move;
