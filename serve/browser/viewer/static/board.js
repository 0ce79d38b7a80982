// Draws boards (webhook JSON, y up) as SVG with the look of the official board. Lengths are in cells.

import { lineArrows } from "./best_line.js";
import { put, svg } from "./dom.js";
import { tame } from "./words.js";

const SQUARE = 0.9;
const BODY = 0.8;
const TAIL = 0.4;
const HEAD = 0.47;
const HALO = 0.05;
const STEPS = [[0, -1], [0, 1], [-1, 0], [1, 0]];
const NO_CHOICE = "#888888";
// The same colours as envs/battlesnake/render/scene.py: apart on light and dark ground, the most distinct ones first.
const PALETTE = [
  "#3b82f6", "#f97316", "#16a34a", "#a855f7", "#ec4899", "#14b8a6", "#eab308", "#785341",
  "#4f46e5", "#84cc16", "#be185d", "#0ea5e9", "#656f82", "#f472b6", "#065f46", "#d97757",
];

/** A colour for each snake of a list, by id: its own choice unless it made none or another has taken it. */
export function snakeColors(snakes) {
  const colors = new Map();
  const taken = new Set();
  for (const snake of snakes) {
    const color = String(snake.customizations?.color ?? "").toLowerCase();
    if (/^#[0-9a-f]{6}$/.test(color) && color !== NO_CHOICE && !taken.has(color)) colors.set(snake.id, color);
    taken.add(color);
  }
  const spare = PALETTE.filter((color) => !taken.has(color));
  for (const snake of snakes) {
    if (!colors.has(snake.id)) colors.set(snake.id, spare.shift() ?? PALETTE[0]);
  }
  return colors;
}

/**
 * Draws a board into an <svg>. `thoughts`: {id, move, probabilities} shows at that snake's head how likely it thought each
 * move. `line`: {id, steps} shows how the game might go on (best_line.js). The squares are kept from one call to the next
 * while the size stays.
 */
export function drawBoard(target, board, { colors = snakeColors(board.snakes), thoughts = null, line = null } = {}) {
  const size = `0 0 ${board.width} ${board.height}`;
  if (target.getAttribute("viewBox") !== size) {
    target.setAttribute("viewBox", size);
    put(target, squares(board), svg("g"));
  }
  const alive = board.snakes.filter((snake) => !snake.death);
  const thinker = thoughts && alive.find((snake) => snake.id === thoughts.id);
  const draw = (snake) => drawSnake(board, snake, colors.get(snake.id));
  put(target.lastChild,
    hazards(board),
    board.snakes.filter((snake) => snake.death).map(draw),
    board.food.filter((point) => isOn(board, point)).map((point) => disc("food", center(board, point), 0.27)),
    alive.map(draw),
    thinker && arrows(board, thinker.body[0], thoughts),
    line && lineArrows(board, line, colors));
  target.setAttribute("aria-label", describe(board));
}

/** The board in words. */
export function describe(board) {
  const alive = board.snakes.filter((snake) => !snake.death);
  const told = alive.map((snake) => `${tame(snake.name || snake.id)}: length ${snake.body.length}, health ${snake.health}`);
  return `Board ${board.width} by ${board.height}, turn ${board.turn}. ${told.join("; ") || "No snake is alive"}.`;
}

const center = (board, point) => [point.x + 0.5, board.height - point.y - 0.5];
const isOn = (board, point) => point.x >= 0 && point.y >= 0 && point.x < board.width && point.y < board.height;
const disc = (name, [x, y], r) => svg("circle", { class: name, cx: x, cy: y, r });

function square(name, [x, y], attributes = {}) {
  const corner = { x: x - SQUARE / 2, y: y - SQUARE / 2, rx: 0.1 };
  return svg("rect", { class: name, ...corner, width: SQUARE, height: SQUARE, ...attributes });
}

function squares(board) {
  const { width, height } = board;
  const cells = Array.from({ length: width * height }, (_, n) => [(n % width) + 0.5, Math.floor(n / width) + 0.5]);
  return svg("g", {}, cells.map((spot) => square("square", spot)));
}

function hazards(board) {
  const layers = new Map();
  for (const point of board.hazards.filter((p) => isOn(board, p))) {
    const key = center(board, point).join();
    layers.set(key, (layers.get(key) ?? 0) + 1);
  }
  return [...layers].map(([key, n]) => square("hazard", key.split(",").map(Number), { "fill-opacity": 1 - 0.62 ** n }));
}

function drawSnake(board, snake, color) {
  const group = svg("g", { class: snake.death ? "snake dead" : "snake", fill: color, stroke: color });
  const runs = bodyRuns(board, snake.body);
  const last = runs.at(-1);
  const tail = last.length > 1 ? taper(...last.splice(-2)) : null;
  if (tail) last.push(tail.root);
  const lines = runs.filter((run) => run.length > 1).map((run) => run.map((spot) => spot.join()).join(" "));
  const stroke = (points, name, width) => svg("polyline", { class: name, points, "stroke-width": width });
  const head = center(board, snake.body[0]);
  return put(group,
    lines.map((points) => stroke(points, "halo", BODY + 2 * HALO)),
    tail && svg("path", { class: "halo", d: tail.path, "stroke-width": 2 * HALO }),
    disc("halo", head, HEAD + HALO),
    lines.map((points) => stroke(points, "body", BODY)),
    tail && svg("path", { class: "tail", d: tail.path }),
    disc("head", head, HEAD),
    eyes(head, facing(board, snake.body)));
}

/** The body's cell centres from head to tail, repeats left out, cut in two wherever it goes across the edge. */
function bodyRuns(board, body) {
  const runs = [[center(board, body[0])]];
  for (let n = 1; n < body.length; n += 1) {
    const [here, there] = [center(board, body[n - 1]), center(board, body[n])];
    const [dx, dy] = [there[0] - here[0], there[1] - here[1]];
    if (dx === 0 && dy === 0) continue;
    if (Math.abs(dx) + Math.abs(dy) > 1) {
      const [sx, sy] = [-Math.sign(dx) / 2, -Math.sign(dy) / 2];
      runs.at(-1).push([here[0] + sx, here[1] + sy]);
      runs.push([[there[0] - sx, there[1] - sy]]);
    }
    runs.at(-1).push(there);
  }
  return runs;
}

/** A tail that narrows smoothly from a body's width at `root` to a round tip at `end`. */
function taper(root, end) {
  const [dx, dy] = [end[0] - root[0], end[1] - root[1]];
  const length = Math.hypot(dx, dy);
  const at = (along, half) => `${root[0] + dx * along - (dy / length) * half} ${root[1] + dy * along + (dx / length) * half}`;
  const [wide, thin] = [BODY / 2, TAIL / 2];
  const narrows = `M${at(0, wide)}C${at(0.5, wide)} ${at(0.6, thin)} ${at(1, thin)}A${thin} ${thin} 0 0 0 ${at(1, -thin)}`;
  return { root, path: `${narrows}C${at(0.6, -thin)} ${at(0.5, -wide)} ${at(0, -wide)}A${wide} ${wide} 0 0 0 ${at(0, wide)}Z` };
}

/** The way a head looks: from its neck on, around the edge too. */
function facing(board, body) {
  const neck = body.find((point) => point.x !== body[0].x || point.y !== body[0].y);
  if (!neck) return [0, -1];
  const [dx, dy] = [body[0].x - neck.x, neck.y - body[0].y];
  return [dx, dy].map((delta) => (Math.abs(delta) > 1 ? -Math.sign(delta) : delta));
}

function eyes([x, y], [fx, fy]) {
  return [-1, 1].flatMap((side) => {
    const [ex, ey] = [x + 0.14 * fx - 0.2 * side * fy, y + 0.14 * fy + 0.2 * side * fx];
    return [disc("eye", [ex, ey], 0.145), disc("pupil", [ex + 0.05 * fx, ey + 0.05 * fy], 0.075)];
  });
}

function arrows(board, point, { move, probabilities }) {
  const [x, y] = center(board, point);
  return STEPS.flatMap(([sx, sy], n) => {
    const share = probabilities?.[n] ?? (n === move ? 1 : 0);
    if (share < 0.005 && n !== move) return [];
    const at = (along, across) => `${x + sx * along - sy * across},${y + sy * along + sx * across}`;
    const points = [at(0.66, -0.21), at(0.66, 0.21), at(0.98, 0)].join(" ");
    return [svg("polygon", { class: n === move ? "arrow chosen" : "arrow", points, "fill-opacity": 0.25 + 0.75 * share })];
  });
}
