// The form for another game: ruleset, map, size, seed and opponents.

import { byId, el, put } from "./dom.js";

const LEAST_PLACES = 3;
const NOBODY = "";

/** Fills the form with what the server knows, set to the game that is played. */
export function listChoices({ rulesets, maps, opponents, sides, most_opponents: most, most_seed: mostSeed }, setup) {
  put(byId("ruleset"), options(rulesets, setup.ruleset));
  put(byId("map"), options(maps, setup.map));
  for (const side of ["width", "height"]) {
    Object.assign(byId(side), { min: sides.least, max: sides.most, value: setup[side] });
  }
  byId("seed").max = mostSeed;
  const places = Math.min(most, Math.max(LEAST_PLACES, setup.opponents.length + 1));
  const place = (_, n) =>
    el("select", { "aria-label": `Opponent ${n + 1}` }, options([NOBODY, ...opponents], setup.opponents[n] ?? NOBODY));
  put(byId("opponents"), Array.from({ length: places }, place));
}

const options = (names, chosen) =>
  names.map((name) => el("option", { value: name, selected: name === chosen }, name === NOBODY ? "nobody" : name));

/** What the form says, as the server is asked for it. */
export function readChoices() {
  const value = (id) => byId(id).value;
  const opponents = [...byId("opponents").querySelectorAll("select")].map((place) => place.value).filter(Boolean);
  const seed = value("seed") === "" ? {} : { seed: Number(value("seed")) };
  const size = { width: Number(value("width")), height: Number(value("height")) };
  return { ruleset: value("ruleset"), map: value("map"), ...size, opponents, ...seed };
}
