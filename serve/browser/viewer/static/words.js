// Numbers, times and strangers' names as they are shown.

export const MOVES = ["up", "down", "left", "right"];
export const ARROWS = ["↑", "↓", "←", "→"];
const MAX_NAME = 40;

const CAUSES = {
  "wall-collision": "left the board",
  "snake-collision": "ran into a body",
  "snake-self-collision": "ran into itself",
  "head-collision": "lost a head-to-head",
  "out-of-health": "starved",
  hazard: "died in a hazard",
  unknown: "is gone",
};

/** A stranger's text: what can't be seen or turns the writing direction is dropped, and it ends somewhere. */
export function tame(text, most = MAX_NAME) {
  const seen = [...String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "")];
  return seen.length > most ? `${seen.slice(0, most - 1).join("")}…` : seen.join("");
}

/** How a snake died, in words. */
export const cause = (name) => CAUSES[name] ?? tame(name || "unknown");

/** Milliseconds. */
export const ms = (value) => (value == null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`);

/** A share as per cent. */
export const percent = (share) => (share == null ? "–" : `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);

/** A whole number with its thousands apart. */
export const count = (value) => (value == null ? "–" : Number(value).toLocaleString("en").replaceAll(",", "\u202f"));

/** How long ago a time (seconds since 1970) was. */
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (past >= size) return `${Math.floor(past / size)} ${unit} ago`;
  }
  return "just now";
}

/** A time (seconds since 1970) in full. */
export const moment = (seconds) => new Date(1000 * seconds).toLocaleString();

/** A value with its sign. */
export function signed(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${size < 10 ? size.toFixed(2) : count(Math.round(size))}`;
}
