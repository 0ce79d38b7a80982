// The replay of one game: loads its turns, plays them, and follows while it is live.

import { gamePath, getJson, poll, showTrouble } from "./api.js";
import { describe, drawBoard, snakeColors } from "./board.js";
import { byId, el, put, say } from "./dom.js";
import { addTurns } from "./frames.js";
import { reasons, snakeRows } from "./panel.js";
import { jump, lineOf, refreshReview, reviewInShort, showReview, startReview, toggleLine } from "./review.js";
import { drawTimeline, moveCursor } from "./timeline.js";
import { MOVES, percent, tame } from "./words.js";

const SPEEDS = [1, 2, 4, 8, 15, 30, 60];
const LIVE_MS = 400;
const MAX_DOUBT = 300;
const OFFICIAL_BOARD = "https://board.battlesnake.com/";

const [gameId, snake] = location.pathname.split("/").slice(2).map(decodeURIComponent);
const you = new URLSearchParams(location.search).get("you");
const api = gamePath("/api/games", gameId, snake);
const query = you == null ? "" : `you=${encodeURIComponent(you)}`;

const frames = [];
let about = null;
let colors = new Map();
let index = 0;
let timer = null;
let speed = 8;
let follows = !location.hash;

const isLive = () => about !== null && about.ended == null;
const isPlaying = () => timer !== null;
const isAtEnd = () => index === frames.length - 1;

/** Fetches what is new; false once the game is over and all is here. */
async function load() {
  const since = frames.length ? frames.at(-1).turn + 1 : 0;
  const answer = await getJson(`${api}/turns?since=${since}&${query}`);
  const isFirst = frames.length === 0;
  about = answer.game;
  addTurns(frames, answer.turns);
  if (answer.turns.length || !isLive()) showNews(isFirst);
  if (answer.turns.length && !isFirst) refreshReview();
  if (answer.more) return load();
  return isLive() || answer.turns.length > 0;
}

function showNews(isFirst) {
  showAbout();
  if (!frames.length) return;
  byId("columns").hidden = false;
  colors = snakeColors(frames.at(-1).board.snakes);
  drawTimeline(byId("timeline"), frames);
  byId("hole").hidden = !frames.some((frame) => frame.skipped);
  byId("slider").max = frames.length - 1;
  byId("follow").hidden = !isLive();
  byId("how-to-analyse").hidden = Boolean(about.analysis) || isLive();
  if (location.hash && isFirst) index = indexOfTurn(Number(location.hash.replace("#turn=", "")));
  else if (follows && isLive()) index = frames.length - 1;
  show();
  if (isFirst) offerAnalysis();
}

/** Shows the analysis where the server makes one: an analysis costs seconds, so only a server for its own machine does. */
function offerAnalysis() {
  if (about.analysis && !frames.some(({ latency_ms: late, value, probabilities }) => late ?? value ?? probabilities)) {
    // A recording of moves alone has nothing for the timeline and the reasons.
    for (const id of ["timeline", "legend", "reasons"]) byId(id).toggleAttribute("hidden", true);
  }
  const shown = { you: about.you, frames, colors: () => colors, turn: () => frames[index].turn, redraw: show };
  if (about.analysis) startReview(about.analysis, { ...shown, go: (turn) => go(indexOfTurn(turn)) });
}

const indexOfTurn = (turn) => Math.max(0, frames.findLastIndex((frame) => frame.turn <= turn));

function showAbout() {
  const result = isLive() ? "live" : (about.result ?? "over");
  const parts = [about.snake, `${about.ruleset} ${about.width}×${about.height}`, about.map === "standard" ? "" : about.map];
  const told = parts.filter(Boolean).map((part) => el("span", {}, tame(part)));
  const doubts = (about.doubts ?? []).map((doubt) => el("span", { role: "note" }, tame(doubt, MAX_DOUBT)));
  put(byId("about"), el("span", { class: `tag ${result}` }, result), told, doubts);
  document.title = `${about.snakes.map((name) => tame(name)).join(", ")} – procsnake arena`;
}

/** Shows the frame at `index`; if it was `asked` for, those who listen are told, too. */
function show({ asked = false } = {}) {
  const frame = frames[index];
  const line = lineOf(frame);
  drawBoard(byId("board"), frame.board, { colors, thoughts: byId("thoughts").checked ? thoughtsOn(frame, line) : null, line });
  say(byId("turn"), `Turn ${frame.turn}`);
  put(byId("snakes"), snakeRows(frame, about, colors));
  put(byId("why"), reasons(frame, about, { isLast: isAtEnd() }));
  showControls(frame);
  showReview(frame, index);
  if (asked) say(byId("status"), `${describe(frame.board)} ${inShort(frame)} ${reviewInShort(frame)}`);
}

/** What the snake that is looked at wanted: the one whose best line is drawn, or else the one whose turns these are. */
function thoughtsOn({ you, move, probabilities }, line) {
  if (line && line.id !== you) return { id: line.id, move: MOVES.indexOf(line.played), probabilities: null };
  return move >= 0 ? { id: you, move, probabilities } : null;
}

function showControls(frame) {
  byId("slider").value = index;
  byId("slider").setAttribute("aria-valuetext", `turn ${frame.turn} of ${frames.at(-1).turn}`);
  moveCursor(byId("timeline"), index);
  say(byId("play"), isPlaying() ? "Pause" : "Play");
  byId("follow").setAttribute("aria-pressed", String(follows && isLive()));
  for (const id of ["first", "back"]) byId(id).disabled = index === 0;
  for (const id of ["onward", "last"]) byId(id).disabled = isAtEnd();
}

function inShort({ move, probabilities }) {
  return move < 0 ? "" : `Played ${MOVES[move]}${probabilities ? ` with ${percent(probabilities[move])}` : ""}.`;
}

function go(to) {
  pause();
  index = Math.max(0, Math.min(frames.length - 1, to));
  follows = isLive() && isAtEnd();
  history.replaceState(null, "", `${location.pathname}${location.search}#turn=${frames[index].turn}`);
  show({ asked: true });
}

function toggle() {
  if (isPlaying()) return go(index);
  if (isAtEnd() && !isLive()) index = -1;
  return tick();
}

function tick() {
  timer = setTimeout(tick, 1000 / speed);
  if (!isAtEnd()) index += 1;
  else if (isLive()) follows = true;
  else pause();
  show();
}

function pause() {
  clearTimeout(timer);
  timer = null;
}

function setSpeed(place) {
  speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, place))];
  byId("speed").value = speed;
}

function toggleThoughts() {
  byId("thoughts").checked = !byId("thoughts").checked;
  show();
}

function onKey(event) {
  const taken = event.key === " " ? "button, a, input, select" : "select, input[type=range]";
  if (!frames.length || event.target.matches(taken) || event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? 10 : 1;
  const actions = {
    " ": toggle,
    ArrowLeft: () => go(index - far),
    ArrowRight: () => go(index + far),
    Home: () => go(0),
    End: () => go(frames.length - 1),
    "+": () => setSpeed(SPEEDS.indexOf(speed) + 1),
    "-": () => setSpeed(SPEEDS.indexOf(speed) - 1),
    t: toggleThoughts,
    n: () => jump(1),
    p: () => jump(-1),
    b: toggleLine,
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

function onTimeline(event) {
  const { left, width } = byId("timeline").getBoundingClientRect();
  go(Math.floor(((event.clientX - left) / width) * frames.length));
}

async function showLinks() {
  const { share_key: key, has_websockets: hasBoard } = await getJson(`${api}?${query}`);
  const hint = key ? " (link to share)" : "";
  const engine = key ? `${location.origin}/share/${key}` : location.origin;
  const board = `${OFFICIAL_BOARD}?${new URLSearchParams({ engine, game: gameId, autoplay: "true" })}`;
  put(byId("links"),
    el("a", { href: `${api}/recording?${query}`, download: true }, "Download the recording"),
    hasBoard && el("a", { href: board, rel: "noreferrer", target: "_blank" }, `Official board${hint}`));
}

function listen() {
  const clicks = {
    first: () => go(0),
    back: () => go(index - 1),
    play: toggle,
    onward: () => go(index + 1),
    last: () => go(frames.length - 1),
    follow: () => go(frames.length - 1),
  };
  for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener("click", action);
  byId("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  byId("speed").addEventListener("change", (event) => setSpeed(SPEEDS.indexOf(Number(event.target.value))));
  byId("thoughts").addEventListener("change", () => show());
  byId("timeline").addEventListener("click", onTimeline);
  document.addEventListener("keydown", onKey);
}

put(byId("speed"), SPEEDS.map((n) => el("option", { value: n }, n === 1 ? "1 turn/s" : `${n} turns/s`)));
setSpeed(SPEEDS.indexOf(speed));
listen();
poll(load, LIVE_MS);
showLinks().catch((error) => showTrouble(error, showLinks));
