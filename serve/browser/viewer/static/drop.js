// Recorded games that are dropped on a page, or chosen, are opened by the server, which runs on this machine.

import { getJson, postFile, showTrouble } from "./api.js";
import { byId, say } from "./dom.js";

const OPENED = "/api/analyses";

/** Opens files that are dropped anywhere on the page, or chosen in the field `#file`. */
export function listenForFiles() {
  let inside = 0;
  const mark = (change) => {
    inside = Math.max(0, inside + change);
    document.body.classList.toggle("dropping", inside > 0);
  };
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => holdsFiles(event) && mark(1));
  document.addEventListener("dragleave", (event) => holdsFiles(event) && mark(-1));
  document.addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    mark(-inside);
    openAll([...event.dataTransfer.files]);
  });
  byId("file").addEventListener("change", (event) => {
    openAll([...event.target.files]);
    event.target.value = "";
  });
}

/** Opens files one after the other, and shows the last one that is a game. */
async function openAll(files) {
  showTrouble(null, openAll);
  let shown = null;
  for (const file of files) {
    say(byId("status"), `Opening ${file.name}`);
    try {
      shown = await open(file);
    } catch (error) {
      showTrouble(error, openAll);
      say(byId("status"), "");
    }
  }
  if (shown && byId("trouble").hidden) location.assign(shown);
}

async function open(file) {
  const { max_bytes: most } = await getJson(OPENED);
  if (file.size > most) throw new Error(`${file.name} has ${file.size} bytes; at most ${most} are read.`);
  const { path } = await postFile(`${OPENED}?${new URLSearchParams({ name: file.name })}`, file);
  return path;
}
