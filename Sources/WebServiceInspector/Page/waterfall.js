// The zoomed interval of the waterfall: [start, end] in milliseconds since 1970, or `null`.
let zoom = null;
const shortestZoom = 1;
function setZoom(interval) {
  zoom = interval;
  $("zoomed").hidden = !zoom;
  $("zoomed").textContent = zoom ? duration(zoom[1] - zoom[0]) + " ×" : "";
  render();
}
// Zooms around a position between 0 and 1; without one, around the start of the selected exchange.
function zoomBy(factor, position) {
  const [start, end] = zoom || range, whole = range[1] - range[0];
  const length = (end - start) * factor;
  if (length >= whole) { setZoom(null); return; }
  if (length < shortestZoom) return;
  const row = rows.get(selected);
  const center = position !== undefined ? start + (end - start) * position : row ? row.start : (start + end) / 2;
  const share = position !== undefined ? position : row && (center < start || center > end) ? 0.1
    : (center - start) / (end - start);
  const from = Math.min(Math.max(center - length * share, range[0]), range[1] - length);
  setZoom([from, from + length]);
}
function pan(share) {
  if (!zoom) return;
  const length = zoom[1] - zoom[0];
  const from = Math.min(Math.max(zoom[0] + length * share, range[0]), Math.max(range[1] - length, range[0]));
  setZoom([from, from + length]);
}
// The wheel with a modifier zooms, and a horizontal wheel moves, so that the list still scrolls.
list.addEventListener("wheel", event => {
  const fall = event.target.closest(".fall");
  if (!fall) return;
  const box = fall.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey || event.altKey) {
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 0.7 : 1 / 0.7, (event.clientX - box.left) / box.width);
  } else if (zoom && (event.deltaX || event.shiftKey)) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / box.width);
  }
}, { passive: false });
$("zoomin").addEventListener("click", () => zoomBy(0.5));
$("zoomout").addEventListener("click", () => zoomBy(2));
$("zoomed").addEventListener("click", () => setZoom(null));
