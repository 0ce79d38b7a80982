// Swipes over an element as moves. A finger that goes on after one swipe can steer again without being lifted.

const FAR = 24;

/** Calls `steer` with "up", "down", "left" or "right" for every swipe over the element. */
export function onSwipe(element, steer) {
  let from = null;
  element.addEventListener("pointerdown", (event) => {
    from = { x: event.clientX, y: event.clientY, last: null };
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (Math.max(Math.abs(dx), Math.abs(dy)) < FAR) return;
    const move = Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? "right" : "left") : dy > 0 ? "down" : "up";
    if (move !== from.last) steer(move);
    from = { x: event.clientX, y: event.clientY, last: move };
  });
  for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => (from = null));
}
