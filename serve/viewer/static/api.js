// What the server is asked for, and what is said when it doesn't answer.

import { byId, say } from "./dom.js";

/** JSON from this server; throws an Error that says what went wrong in words. */
export async function getJson(path) {
  let response;
  try {
    response = await fetch(path, { headers: { Accept: "application/json" } });
  } catch {
    throw new Error("The server doesn't answer. Trying again …");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(String(answer.error ?? `The server answers with status ${response.status}.`));
  return answer;
}

/** Path of one game under a prefix. */
export const gamePath = (prefix, id, snake) => `${prefix}/${encodeURIComponent(id)}/${encodeURIComponent(snake)}`;

/** Runs `task` now and then every `milliseconds`, one at a time, while the page is seen; until it returns false. */
export async function poll(task, milliseconds) {
  for (;;) {
    if (!document.hidden) {
      try {
        if ((await task()) === false) return;
        showTrouble(null, task);
      } catch (error) {
        showTrouble(error, task);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
  }
}

const troubles = new Map();

/** Tells of an error at the top of the page; null takes away what came `from` the same place. */
export function showTrouble(error, from = null) {
  troubles.set(from, error);
  const told = new Set([...troubles.values()].filter(Boolean).map((trouble) => trouble.message));
  byId("trouble").hidden = told.size === 0;
  say(byId("trouble"), [...told].join(" "));
}
