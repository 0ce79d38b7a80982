// The evaluation graph: every snake's chance of winning, turn by turn, with its faults as dots.

import { svg } from "./dom.js";
import { percent, tame } from "./words.js";

const HEIGHT = 100;
const LEVELS = [25, 50, 75];

/** Draws the chances of all snakes that are analysed; one frame is one unit wide. Those of `chosen` stand out. */
export function drawChances(target, frames, { sides, chosen, faults, colors }) {
  const index = new Map(frames.map((frame, n) => [frame.turn, n]));
  target.setAttribute("viewBox", `0 0 ${Math.max(1, frames.length)} ${HEIGHT}`);
  const levels = LEVELS.map((level) => `M0 ${level}H${frames.length}`).join("");
  const analysed = sides.filter((side) => side.analysis);
  analysed.sort((a, b) => chosen.includes(a) - chosen.includes(b));
  const marked = faults.filter(({ entry }) => index.has(entry.turn));
  const lost = marked.filter(({ isLost }) => isLost).map(({ entry }) => `M${index.get(entry.turn) + 0.5} 0V${HEIGHT}`);
  const dot = ({ entry }) => `M${index.get(entry.turn) + 0.5} ${y(entry)}h0`;
  target.replaceChildren(
    svg("path", { class: "level", d: levels }),
    svg("path", { class: "lost", d: lost.join("") || "M0 0" }),
    ...analysed.map((side) => svg("path", {
      class: chosen.includes(side) ? "chance chosen" : "chance", stroke: colors.get(side.id), d: line(side, index),
    })),
    ...marked.map((fault) => svg("path", { class: `fault ${fault.entry.class}`, d: dot(fault) })),
    svg("path", { class: "cursor" }));
  target.setAttribute("aria-label", inWords(analysed, faults));
}

const y = ({ chance }) => (HEIGHT * (1 - chance)).toFixed(1);

function line({ analysis }, index) {
  const points = analysis.turns.filter(({ turn }) => index.has(turn));
  return points.map((entry, n) => `${n ? "L" : "M"}${index.get(entry.turn) + 0.5} ${y(entry)}`).join("") || "M0 0";
}

function inWords(sides, faults) {
  const ends = sides.filter(({ analysis }) => analysis.turns.length).map(({ name, analysis: { turns } }) =>
    `${tame(name)}: ${percent(turns[0].chance)} on turn ${turns[0].turn}, ${percent(turns.at(-1).chance)} on turn ${turns.at(-1).turn}`);
  return `Chances of winning. ${ends.join("; ") || "None is known yet"}. ${faults.length} turns are marked; the list below names them.`;
}
