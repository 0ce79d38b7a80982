// The game at a glance under its board: latency and value turn by turn, and the turns that want a look.

import { isAgainst, wasNotPlayed } from "./frames.js";
import { svg } from "./dom.js";

const HEIGHT = 100;
const VALUE_BAND = [8, 60];

/** Draws the timeline of frames; one frame is one unit wide. */
export function drawTimeline(target, frames) {
  target.setAttribute("viewBox", `0 0 ${Math.max(1, frames.length)} ${HEIGHT}`);
  const slowest = Math.max(1, ...frames.map((frame) => frame.latency_ms ?? 0));
  const kinds = { latency: "", against: "", late: "" };
  frames.forEach((frame, n) => {
    const kind = frame.fallback || frame.failure || wasNotPlayed(frame) ? "late" : isAgainst(frame) ? "against" : "latency";
    const height = kind === "latency" ? 0 : 12;
    const top = HEIGHT - Math.max(height, 0.6 * HEIGHT * Math.sqrt((frame.latency_ms ?? 0) / slowest));
    kinds[kind] += `M${n + 0.08} ${HEIGHT}V${top.toFixed(1)}h.84V${HEIGHT}z`;
  });
  kinds.hole = frames.map((frame, n) => (frame.skipped ? `M${n} 0V${HEIGHT}` : "")).join("");
  const bars = Object.entries(kinds).map(([kind, path]) => svg("path", { class: kind, d: path || "M0 0" }));
  target.replaceChildren(...bars, svg("path", { class: "value", d: valueLine(frames) }), svg("path", { class: "cursor" }));
}

/** Marks the frame that is shown. */
export function moveCursor(target, index) {
  target.lastChild?.setAttribute("d", `M${index + 0.5} 0V${HEIGHT}`);
}

function valueLine(frames) {
  const values = frames.map((frame) => frame.value).filter((value) => value != null);
  if (values.length < 2) return "M0 0";
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [top, bottom] = VALUE_BAND;
  const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low || 1);
  let path = "";
  frames.forEach((frame, n) => {
    if (frame.value != null) path += `${path ? "L" : "M"}${n + 0.5} ${y(frame.value).toFixed(1)}`;
  });
  return path;
}
