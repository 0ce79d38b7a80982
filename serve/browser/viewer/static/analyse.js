// The page that opens recorded games, and lists those that are open.

import { getJson, poll } from "./api.js";
import { byId, el, put } from "./dom.js";
import { listenForFiles } from "./drop.js";
import { count, tame } from "./words.js";

const WAIT_MS = 1000;
let shown = "";

async function load() {
  const { games } = await getJson("/api/analyses");
  byId("opened").hidden = games.length === 0;
  // A list that is filled again would take the focus away.
  if (JSON.stringify(games) !== shown) put(byId("games"), games.map(row));
  shown = JSON.stringify(games);
}

function row({ name, path, turns, snakes, done }) {
  const told = done < 1 ? `${Math.floor(100 * done)} % analysed` : "analysed";
  return el("li", { class: "card" },
    el("a", { href: path }, snakes.map((snake) => tame(snake)).join(", ")),
    el("span", { class: "muted" }, `${tame(name)}, ${count(turns)} turns`),
    el("span", { class: "small" }, told));
}

listenForFiles();
poll(load, WAIT_MS);
