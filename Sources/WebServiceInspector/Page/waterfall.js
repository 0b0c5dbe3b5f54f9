// The waterfall. Its axis is the time, in which each stretch where nothing starts or ends is shortened
// to a length that depends on the usual duration, so that neither a pause nor an open request
// flattens the other exchanges.
let axis = { times: [0, 1], places: [0, 1], breaks: [] };
// The interval of all exchanges, and the zoomed one or `null`, in milliseconds since 1970.
let range = [0, 1], zoom = null;
function makeAxis() {
  const starts = Float64Array.from(shown, row => row.start).sort();
  // An open exchange does not count as work.
  const ends = Float64Array.from(shown, row => row.end ?? row.start).sort();
  const lengths = Float64Array.from(shown.filter(row => row.duration !== undefined), row => row.duration).sort();
  const longestPause = Math.max(lengths[Math.floor(lengths.length * 0.9)] || 0, 20), longestWork = longestPause * 8;
  const times = [starts[0] ?? 0], places = [0], breaks = [];
  const add = (time, longest) => {
    const length = time - times.at(-1);
    if (length <= 0) return;
    if (length > longest * 1.001) breaks.push([places.at(-1), longest, length - longest, longest === longestPause]);
    times.push(time);
    places.push(places.at(-1) + Math.min(length, longest));
  };
  for (let start = 0, end = 0; end < ends.length;) {
    const isStart = starts[start] <= ends[end], isWorking = start > end;
    add(isStart ? starts[start] : ends[end], isWorking ? longestWork : longestPause);
    if (isStart) start += 1; else end += 1;
  }
  if (shown.some(row => row.end === undefined)) add(Date.now(), longestWork);
  if (times.length === 1) add(times[0] + 1, 1);
  axis = { times, places, breaks };
  range = [times[0], times.at(-1)];
  drawOverview();
}
// Returns the value of a monotonic table at a position of another one.
function interpolate(value, from, to) {
  let low = 0, high = from.length - 1;
  if (value <= from[low]) return to[low] + Math.min(value - from[low], 0);
  if (value >= from[high]) return to[high] + value - from[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle; else high = middle;
  }
  return to[low] + (to[high] - to[low]) * (value - from[low]) / (from[high] - from[low]);
}
const placeOf = time => interpolate(time, axis.times, axis.places);
const timeAt = place => interpolate(place, axis.places, axis.times);
// Returns the share of the width of an interval at which a time is.
function share(time, [start, end] = zoom || range) {
  const first = placeOf(start);
  return (placeOf(time) - first) / Math.max(placeOf(end) - first, 0.001);
}
function timeOf(share, [start, end] = zoom || range) {
  const first = placeOf(start);
  return timeAt(first + (placeOf(end) - first) * share);
}
const niceStep = length => {
  const power = 10 ** Math.floor(Math.log10(Math.max(length, 0.01)));
  return power * ([1, 2, 5].find(factor => factor * power >= length) ?? 10);
};
// Returns round times from the start of all exchanges, with the shares of the width at which they are.
function ticks(width, interval = zoom || range) {
  const count = Math.max(2, Math.floor(width / 76)), found = [];
  for (let index = 0; index < count; index += 1) {
    const time = timeOf(index / count, interval) - range[0];
    const step = niceStep((timeOf((index + 0.1) / count, interval) - range[0] - time) * 10);  // of this stretch
    const tick = Math.ceil(time / step - 1e-6) * step, at = share(tick + range[0], interval);
    const label = tickLabel(tick, step), length = label.length * 6.5 + 12, last = found.at(-1);
    if (at * width > width - length || last && (at - last.at) * width < Math.max(last.length, 60)) continue;
    found.push({ at, label, length });
  }
  return found;
}
const mostMarksOfTime = 40;
// Returns where time is shortened: [share of the width, description], those that are wide enough.
function marksOf(interval, width) {
  const [start, end] = interval.map(placeOf), length = Math.max(end - start, 0.001), marks = [];
  for (const [place, shown, hidden, isIdle] of axis.breaks) {
    const at = (place + shown / 2 - start) / length;
    if (at < 0 || at > 1 || shown / length * width < 2) continue;
    marks.push([at, duration(hidden) + (isIdle ? " without any exchange" : " in which nothing starts or ends")
      + " are left out here"]);
    if (marks.length === mostMarksOfTime) break;
  }
  return marks;
}
function breakNodes(interval, width) {
  return marksOf(interval, width).map(([at, text]) => {
    const mark = el("span", "break");
    mark.style.left = at * 100 + "%";
    mark.title = text;
    return mark;
  });
}
function drawScale() {
  const scale = $("scale"), width = scale.clientWidth, all = ticks(width), hatch = "repeating-linear-gradient"
    + "(135deg, var(--card) 0 2px, var(--dim) 2px 3px)";
  scale.replaceChildren(...all.map(({ at, label }) => {
    const element = el("span", "", label);
    element.style.left = at * 100 + "%";
    return element;
  }), ...breakNodes(zoom || range, width));
  list.style.setProperty("--ticks", all.map(({ at }) => `linear-gradient(90deg, transparent ${at * 100}%,
    var(--line) ${at * 100}% calc(${at * 100}% + 1px), transparent calc(${at * 100}% + 1px))`).join(",") || "none");
  list.style.setProperty("--breaks", marksOf(zoom || range, width).map(([at]) =>
    `${hatch} ${at * 100}% 0 / 6px 100% no-repeat`).join(",") || "none");
}
// The overview: all exchanges, one line each, and the zoomed interval.
const lanes = 8;
function drawOverview() {
  const strip = $("strip"), scale = devicePixelRatio, { clientWidth: width, clientHeight: height } = strip;
  if (!width) return;
  [strip.width, strip.height] = [width * scale, height * scale];
  const context = strip.getContext("2d"), style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue("--" + name);
  const tones = {
    ok: color("ok"), moved: color("move"), client: color("client"), server: color("bad"), failed: color("bad"),
    cancelled: color("idle"), pending: color("accent"),
  };
  const font = getComputedStyle(strip).fontFamily;
  context.scale(scale, scale);
  shown.forEach((row, index) => {
    const from = share(row.start, range) * width, to = share(row.end ?? Date.now(), range) * width;
    context.fillStyle = tones[row.class];
    context.fillRect(from, 15 + index % lanes * 3, Math.max(to - from, 1.5), 2);
  });
  context.font = "10px " + font;
  for (const { label, at } of ticks(width, range)) {
    context.fillStyle = color("line-strong");
    context.fillRect(at * width, 0, 1, height);
    context.fillStyle = color("dim");
    context.fillText(label, at * width + 4, 10);
  }
  $("breaks").replaceChildren(...breakNodes(range, width));
  showZoom();
}
function showZoom() {
  $("zoomed").hidden = $("window").hidden = !zoom;
  if (!zoom) return;
  $("zoomed").textContent = duration(zoom[1] - zoom[0]) + " ×";
  const [from, to] = zoom.map(time => Math.min(Math.max(share(time, range), 0), 1));
  $("window").style.left = from * 100 + "%";
  $("window").style.width = (to - from) * 100 + "%";
}
const shortestZoom = 0.1;
function setZoom(interval) {
  zoom = interval;
  showZoom();
  render();
}
// Shows the interval between two shares of the whole width.
function zoomTo(from, to) {
  const length = to - from, start = Math.min(Math.max(from, 0), 1 - length);
  if (length >= 1) { setZoom(null); return; }
  const interval = [timeOf(start, range), timeOf(start + length, range)];
  if (interval[1] - interval[0] >= shortestZoom) setZoom(interval);
}
const zoomShares = () => zoom ? zoom.map(time => share(time, range)) : [0, 1];
// Zooms around a share of the shown width; without one, around the start of the selected exchange.
function zoomBy(factor, position) {
  const [start, end] = zoomShares(), row = rows.get(selected);
  const at = position === undefined && row ? share(row.start) : position ?? 0.5;
  const isVisible = at >= 0 && at <= 1, center = start + (end - start) * at, length = (end - start) * factor;
  const from = center - length * (isVisible ? at : 0.1);
  zoomTo(from, from + length);
}
function pan(shares) {
  const [start, end] = zoomShares(), move = (end - start) * shares;
  if (zoom) zoomTo(start + move, end + move);
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
// Dragging over the overview selects an interval, dragging the interval moves it, and a click shows all.
let drag = null;
const shareAt = event => {
  const box = $("strip").getBoundingClientRect();
  return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
};
$("overview").addEventListener("pointerdown", event => {
  if (event.target === $("zoomed")) return;
  const at = shareAt(event), [from, to] = zoomShares();
  drag = { at, from, to, isMove: zoom !== null && at > from && at < to, hasMoved: false };
  $("overview").setPointerCapture(event.pointerId);
});
$("overview").addEventListener("pointermove", event => {
  if (!drag) return;
  const at = shareAt(event), distance = at - drag.at;
  drag.hasMoved ||= Math.abs(distance) * $("strip").clientWidth > 3;
  if (!drag.hasMoved) return;
  if (drag.isMove) zoomTo(drag.from + distance, drag.to + distance);
  else zoomTo(Math.min(at, drag.at), Math.max(at, drag.at));
});
$("overview").addEventListener("pointerup", () => {
  if (drag && !drag.hasMoved) setZoom(null);
  const first = zoom ? lines.findIndex(([row]) => (row.end ?? Infinity) >= zoom[0] && row.start <= zoom[1]) : -1;
  if (first >= 0 && drag?.hasMoved) list.scrollTop = first * rowHeight();
  drag = null;
});
$("zoomin").addEventListener("click", () => zoomBy(0.5));
$("zoomout").addEventListener("click", () => zoomBy(2));
$("zoomed").addEventListener("click", () => setZoom(null));
new ResizeObserver(drawOverview).observe($("overview"));
// Another screen can have another number of pixels.
function watchPixels() {
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => {
    drawOverview();
    watchPixels();
  }, { once: true });
}
watchPixels();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
