// Unpacks the games that a page carries as compressed SVG.
(() => {
  "use strict";
  async function unpack(picture) {
    const packed = Uint8Array.from(atob(picture.dataset.svg), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const svg = await new Response(stream).blob();
    picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  }
  document.querySelectorAll("img[data-svg]").forEach(unpack);
})();
