// What the server is asked for, and what is said when it doesn't answer.

import { byId, say } from "./dom.js";

/** JSON from this server; throws an Error that says what went wrong in words. */
export const getJson = (path) => exchange(path, {}, "The server doesn't answer. Trying again …");

/** The answer to JSON that is sent to this server; throws an Error with the answer's `status`, undefined without an answer. */
export function postJson(path, body) {
  const headers = { "Content-Type": "application/json" };
  return exchange(path, { method: "POST", headers, body: JSON.stringify(body) }, "The server doesn't answer. Is it still running?");
}

/** The answer to a file that is sent to this server; throws as `postJson` does. */
export function postFile(path, file) {
  const headers = { "Content-Type": "application/octet-stream" };
  return exchange(path, { method: "POST", headers, body: file }, "The server doesn't answer. Is it still running?");
}

async function exchange(path, options, silence) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, Accept: "application/json" } });
  } catch {
    throw new Error(silence);
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(String(answer.error ?? `The server answers with status ${response.status}.`));
  throw Object.assign(error, { status: response.status });
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
