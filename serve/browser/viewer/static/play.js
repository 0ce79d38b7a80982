// A person plays: keys, swipes and buttons become moves, turn by turn or against a clock.

import { getJson, postJson, showTrouble } from "./api.js";
import { drawBoard, snakeColors } from "./board.js";
import { listChoices, readChoices } from "./choices.js";
import { byId, el, put, say } from "./dom.js";
import { toldDeath } from "./frames.js";
import { snakeRows } from "./panel.js";
import { onSwipe } from "./swipe.js";
import { MOVES, tame } from "./words.js";

const CLOCKS = [0, 2000, 1000, 700, 500, 300, 200];
const WATCHING_MS = 250;
const KEYS = {
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", w: "up", s: "down", a: "left", d: "right",
};
const MOOD = { won: "good", lost: "bad", draw: "warn" };

let game = null;
let known = null;
let hint = null;
let wanted = null;
let isBusy = false;
let isRunning = false;

const clock = () => Number(byId("clock").value);
const isPlaying = () => game !== null && !game.over && game.alive;

/** Asks the server to do something with the game; false if it refused, which is then told. */
async function act(path, body) {
  isBusy = true;
  try {
    game = await postJson(`/api/play/${path}`, body);
    hint = null;
    say(byId("notice"), "");
    return true;
  } catch (error) {
    say(byId("notice"), error.message);
    if (error.status === 409) game = await getJson("/api/play").catch(() => game);
    return false;
  } finally {
    isBusy = false;
    show();
  }
}

/** Plays one turn; without a move the snake goes on as it went. */
async function playTurn(move) {
  if (isBusy || game.over) return;
  wanted = null;
  if ((await act("move", { turn: game.turn, move })) && !isRunning) tellTurn(move);
}

function tellTurn(move) {
  const you = game.board.snakes.find((snake) => snake.id === game.you);
  say(byId("status"), `Turn ${game.turn}${move ? `, ${move}` : ""}. Length ${you.body.length}, health ${you.health}.`);
}

/** Plays turn after turn until the clock is stopped, the game is over, or the person's snake has just died. */
async function run() {
  if (isRunning || game.over) return;
  isRunning = true;
  show();
  const lived = game.alive;
  while (isRunning && !game.over && game.alive === lived) {
    const began = performance.now();
    if (!document.hidden) await playTurn(wanted);
    const period = game.alive && clock() ? clock() : WATCHING_MS;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, began + period - performance.now())));
  }
  isRunning = false;
  show();
}

function steer(move) {
  if (!isPlaying()) return;
  if (!game.allowed.includes(move)) {
    if (!isRunning) say(byId("notice"), `${move} leads into your own neck; a snake can't turn round on the spot`);
    return;
  }
  if (!clock()) {
    playTurn(move);
    return;
  }
  wanted = move;
  run();
}

/** The space bar: a turn straight on, or the clock's start and stop. The dead watch how the others go on. */
function goOn() {
  if (game.over) return;
  if (isRunning) isRunning = false;
  else if (clock() || !game.alive) run();
  else playTurn(null);
}

async function askHint() {
  if (!isPlaying()) return;
  const turn = game.turn;
  try {
    const answer = await postJson("/api/play/hint", { turn });
    if (game.turn === turn) hint = answer;
  } catch (error) {
    say(byId("notice"), error.message);
  }
  show();
}

async function undo() {
  isRunning = false;
  if (!isBusy && (await act("undo", { turn: game.turn }))) say(byId("status"), `Back on turn ${game.turn}.`);
}

async function begin(chosen) {
  isRunning = false;
  if (isBusy) return;
  say(byId("notice"), "Setting up the game …");
  if (!(await act("new", chosen))) return;
  wanted = null;
  byId("other").open = false;
  byId("field").focus();
  say(byId("status"), "A new game.");
}

/** The board as the viewer draws it. */
function drawn() {
  const death = (snake) => (snake.eliminatedCause ? toldDeath(snake) : null);
  return { ...game.board, snakes: game.board.snakes.map((snake) => ({ ...snake, death: death(snake) })) };
}

function show() {
  if (!game) return;
  byId("columns").hidden = false;
  const board = drawn();
  const colors = snakeColors(board.snakes);
  const thoughts = hint && { id: game.you, move: MOVES.indexOf(hint.move), probabilities: null };
  drawBoard(byId("board"), board, { colors, thoughts });
  say(byId("turn"), `Turn ${game.turn}`);
  put(byId("snakes"), snakeRows({ board, turn: game.turn }, { bodies: [] }, colors));
  say(byId("hint-text"), hint ? hint.text : "");
  showAbout();
  showEnding();
  showControls();
}

function showAbout() {
  const { ruleset, map, width, height, seed } = game.setup;
  const parts = [`${tame(ruleset)} ${width}×${height}`, map === "standard" ? "" : tame(map), `seed ${seed}`];
  put(byId("about"), parts.filter(Boolean).map((part) => el("span", {}, part)));
}

function showEnding() {
  byId("ending").className = `note ${game.over ? (MOOD[game.result] ?? "warn") : ""}`;
  const own = game.ending || game.news.join(" ");
  say(byId("ending"), tame(own, 400));
  put(byId("links"), game.over && el("a", { href: game.replay }, "Watch the game again, and see what the others thought"));
}

function showControls() {
  const going = isRunning && !game.over;
  say(byId("go"), going ? "Pause" : !game.alive ? "Watch on" : clock() ? "Start" : "Straight on");
  byId("go").disabled = game.over;
  byId("go").classList.toggle("primary", !game.over);
  byId("again").classList.toggle("primary", game.over);
  byId("hint").disabled = !isPlaying();
  byId("undo").disabled = game.turn === 0;
  for (const move of MOVES) byId(move).disabled = !isPlaying();
}

function onKey(event) {
  if (!game || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select") || (event.key === " " && event.target.matches("button, a, summary"))) return;
  const move = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  const actions = { " ": goOn, h: askHint, u: undo, n: () => begin({}) };
  const action = move ? () => steer(move) : actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  // A held key would play several turns before one is seen.
  if (!event.repeat) action();
}

function listen() {
  const clicks = { go: goOn, hint: askHint, undo, again: () => begin({}) };
  for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener("click", action);
  for (const move of MOVES) byId(move).addEventListener("click", () => steer(move));
  byId("clock").addEventListener("change", () => {
    isRunning = false;
    byId("field").focus();
    show();
  });
  byId("choices").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(readChoices());
  });
  document.addEventListener("keydown", onKey);
  onSwipe(byId("field"), steer);
}

function listClocks(chosen) {
  const offered = [...new Set([...CLOCKS, chosen])].sort((a, b) => (a && b ? b - a : a - b));
  const told = (ms) => (ms ? `${ms / 1000} s a turn` : "turn by turn");
  put(byId("clock"), offered.map((ms) => el("option", { value: ms, selected: ms === chosen }, told(ms))));
}

async function start() {
  known = await getJson("/api/play/choices");
  game = await getJson("/api/play");
  listClocks(known.clock_ms);
  listChoices(known, game.setup);
  listen();
  show();
  byId("field").focus();
}

start().catch(showTrouble);
