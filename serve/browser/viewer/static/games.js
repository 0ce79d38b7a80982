// The page of all games: figures, live games with their boards, past games by pages.

import { gamePath, getJson, poll, showTrouble } from "./api.js";
import { drawBoard, snakeColors } from "./board.js";
import { byId, el, put, say, svg } from "./dom.js";
import { ago, cause, count, moment, ms, percent, tame } from "./words.js";

const PAGE = 25;
const MAX_CARDS = 12;
const LINKABLE = /^[A-Za-z0-9._:-]{1,128}$/;

const cards = new Map();
let offset = 0;

const link = (game) => `${gamePath("/watch", game.id, game.snake)}?you=${encodeURIComponent(game.you)}`;
const keyOf = (game) => JSON.stringify([game.id, game.snake, game.you]);
const canBeWatched = (game) => LINKABLE.test(game.id);
const isPlain = (game) => game.map === "" || game.map === "standard";
const kind = (game) => [game.ruleset, `${game.width}×${game.height}`, ...(isPlain(game) ? [] : [game.map])].join(" · ");

async function showFigures() {
  const found = await getJson("/api/statistics");
  const decided = found.won + found.lost + found.draw;
  const figure = (title, value, { tone = "", more = "" } = {}) =>
    el("div", { class: "card" }, el("dt", {}, title), el("dd", { class: tone }, value, more && el("small", {}, ` ${more}`)));
  put(byId("figures"),
    figure("Games", count(found.games), { more: aside(found) }),
    figure("Won", decided ? percent(found.won / decided) : "–", { more: decided ? `of ${count(decided)}` : "" }),
    figure("Answer, p50", ms(found.p50)),
    figure("Answer, p95", ms(found.p95)),
    figure("Answer, p99", ms(found.p99)),
    figure("Timeouts", count(found.timeouts), { tone: found.timeouts ? "bad" : "good" }),
    figure("Errors", count(found.errors), { tone: found.errors ? "bad" : "good" }));
  say(byId("serving"), Object.keys(found.snakes).map((name) => tame(name)).join(", "));
  showDeaths(Object.entries(found.causes).sort((a, b) => b[1] - a[1]));
}

/** What stands beside the number of games. Checks by `procsnake doctor` are counted in no figure. */
function aside({ live, checks }) {
  const told = [live && `${count(live)} live`, checks && `and ${count(checks)} check${checks === 1 ? "" : "s"}, not counted`];
  return told.filter(Boolean).join(", ");
}

function showDeaths(causes) {
  const all = causes.reduce((sum, [, number]) => sum + number, 0);
  byId("deaths-section").hidden = all === 0;
  put(byId("deaths"), causes.map(([name, number]) =>
    el("li", {},
      el("span", {}, cause(name)),
      el("span", { class: "track" }, el("span", { share: number / all })),
      el("span", { class: "number" }, count(number)))));
}

async function showLive() {
  const { games } = await getJson(`/api/games?live=1&limit=${MAX_CARDS}`);
  const shown = games.filter(canBeWatched);
  byId("no-live").hidden = shown.length > 0;
  const keys = new Set(shown.map(keyOf));
  for (const [key, card] of cards) {
    if (!keys.has(key)) {
      card.node.remove();
      cards.delete(key);
    }
  }
  for (const game of shown) {
    if (!cards.has(keyOf(game))) cards.set(keyOf(game), newCard(game));
  }
  await Promise.all(shown.map((game) => updateCard(cards.get(keyOf(game)), game)));
}

function newCard(game) {
  const board = svg("svg", { class: "board", role: "img", viewBox: "0 0 1 1" });
  const [turn, names] = [el("span", { class: "muted" }), el("ul", { class: "names" })];
  const top = el("div", { class: "top" }, el("span", { class: "tag live" }, game.is_check ? "check" : "live"), turn);
  const node = el("li", {}, el("a", { class: "card", href: link(game) }, top, board, names));
  byId("live").append(node);
  return { node, board, turn, names, seen: 0, colors: null };
}

async function updateCard(card, game) {
  const path = `${gamePath("/api/games", game.id, game.snake)}/turns`;
  const { turns } = await getJson(`${path}?since=${Math.max(card.seen, game.turns)}&you=${encodeURIComponent(game.you)}`);
  const last = turns.at(-1);
  if (!last) return;
  const board = { turn: last.turn, ...last.board };
  card.seen = last.turn;
  card.colors ??= snakeColors(board.snakes);
  drawBoard(card.board, board, { colors: card.colors });
  say(card.turn, `turn ${last.turn}`);
  put(card.names, board.snakes.map((snake) => nameOf(snake, card.colors.get(snake.id), snake.id === game.you)));
}

function nameOf(snake, color, isYou) {
  return el("li", {},
    el("span", { class: "dot", tone: color }),
    el("bdi", { class: "name" }, tame(snake.name || snake.id)),
    isYou && el("span", { class: "tag you" }, "you"));
}

async function showPast() {
  const { games, more } = await getJson(`/api/games?live=0&limit=${PAGE}&offset=${offset}`);
  put(byId("past"), games.map(pastRow));
  byId("no-past").hidden = offset > 0 || games.length > 0;
  byId("past-scroll").hidden = games.length === 0;
  byId("pager").hidden = offset === 0 && !more;
  byId("newer").disabled = offset === 0;
  byId("older").disabled = !more;
  say(byId("page"), offset || more ? `Games ${offset + 1} to ${offset + games.length}` : "");
}

function pastRow(game) {
  const names = game.snakes.flatMap((name, n) => [n > 0 && ", ", el("bdi", {}, tame(name) || "nameless")]);
  const number = (value, name) => el("td", { class: `number ${name}` }, value);
  const trouble = (value) => (value ? el("span", { class: "bad" }, count(value)) : "0");
  return el("tr", {},
    el("td", {}, resultTag(game)),
    el("td", { class: "names" }, canBeWatched(game) ? el("a", { href: link(game) }, names) : names),
    el("td", { class: "game" }, tame(kind(game))),
    number(count(game.turns), "turns"),
    el("td", { class: "how" }, game.cause ? cause(game.cause) : game.result === "won" ? "survived" : "–"),
    number(ms(game.p50), "p50"),
    number(ms(game.p99), "p99"),
    number(trouble(game.timeouts), "timeouts"),
    number(trouble(game.errors), "errors"),
    el("td", { class: "muted when", title: moment(game.started) }, ago(game.started)));
}

function resultTag(game) {
  if (game.is_check) return el("span", { class: "tag", title: "played by procsnake doctor, counted in no figure" }, "check");
  return el("span", { class: `tag ${game.result ?? ""}` }, game.result ?? "over");
}

function turnPage(pages) {
  offset = Math.max(0, offset + pages * PAGE);
  showPast().catch((error) => showTrouble(error, showPast));
}

byId("newer").addEventListener("click", () => turnPage(-1));
byId("older").addEventListener("click", () => turnPage(1));
poll(showLive, 1000);
poll(showPast, 4000);
poll(showFigures, 4000);
