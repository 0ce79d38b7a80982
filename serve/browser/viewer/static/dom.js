// Elements without markup: every text goes in as text, so nothing that a stranger wrote is ever parsed.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Attributes that begin with "on" are listeners; `share` (0..1) and `tone` (a colour) are for style sheets.
 * Children may be lists. What is false or null is left out.
 */
export function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "share" || name === "tone") node.style.setProperty(`--${name}`, value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  return put(node, ...children);
}

/** Replaces what is in an element. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Sets an element's text, and leaves it alone if it reads so already. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
