// The best line on a board: one arrow per snake, along the cells that its moves lead through.

import { svg } from "./dom.js";
import { MOVES } from "./words.js";

const STEPS = [[0, -1], [0, 1], [-1, 0], [1, 0]];
const HEAD = 0.3;

/** An arrow for each snake of a line {id, steps: [{id: move}]}. That of the snake whose line it is lies on top. */
export function lineArrows(board, { id, steps }, colors) {
  const snakes = board.snakes.filter((snake) => !snake.death && steps[0]?.[snake.id]);
  snakes.sort((a, b) => (a.id === id) - (b.id === id));
  return snakes.map((snake) => {
    const moves = steps.map((moves) => MOVES.indexOf(moves[snake.id])).filter((move) => move >= 0);
    const attributes = snake.id === id ? { class: "line own" } : { class: "line", color: colors.get(snake.id) };
    return svg("g", attributes, arrow(board, snake.body[0], moves));
  });
}

function arrow(board, head, moves) {
  let [x, y] = [head.x + 0.5, board.height - head.y - 0.5];
  let path = "";
  let [dx, dy] = [0, 0];
  moves.forEach((move, n) => {
    [dx, dy] = STEPS[move];
    // The first stroke begins at the head's edge, the last one ends where the tip begins.
    const [from, to] = [n === 0 ? 0.5 : 0, n === moves.length - 1 ? 1 - HEAD : 1];
    path += `${n === 0 ? `M${x + from * dx} ${y + from * dy}` : ""}L${x + to * dx} ${y + to * dy}`;
    [x, y] = [x + dx, y + dy];
    if (x < 0 || y < 0 || x > board.width || y > board.height) {
      [x, y] = [(x + board.width) % board.width, (y + board.height) % board.height];
      path += `M${x} ${y}`;
    }
  });
  const at = (along, across) => `${x + dx * (along - HEAD) - dy * across} ${y + dy * (along - HEAD) + dx * across}`;
  const tip = `M${at(0, -HEAD)}L${at(0, HEAD)}L${at(1.6 * HEAD, 0)}Z`;
  return [["edge", "shaft"], ["edge tip", "tip"]].flatMap((names, n) =>
    names.map((name) => svg("path", { class: name, d: n === 0 ? path : tip })));
}
