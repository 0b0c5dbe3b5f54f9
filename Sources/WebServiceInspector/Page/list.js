// The list: only the visible rows have elements, so a filter takes the same time for any number of
// exchanges.
const rows = new Map();  // by number
let shown = [], selected = null, hiddenUpTo = 0, state = "all", range = [0, 1], isLoaded = false;
const pool = [];
const list = $("list");
const states = [
  ["all", "All", () => true], ["2", "2xx", row => row.class === "ok"],
  ["3", "3xx", row => row.class === "moved"], ["4", "4xx", row => row.class === "client"],
  ["5", "5xx", row => row.class === "server"], ["failed", "Failed", row => row.class === "failed"],
  ["active", "Active", row => row.state !== "ended"],
];
function classOf(row) {
  if (row.error) return "failed";
  if (row.cancelled) return "cancelled";
  switch (Math.floor((row.status || 0) / 100)) {
  case 2: return "ok";
  case 3: return "moved";
  case 4: return "client";
  case 5: return "server";
  default: return row.state === "ended" && !row.status ? "ok" : "pending";
  }
}
function statusText(row) {
  if (row.status) return String(row.status);
  return row.error ? "ERR" : row.cancelled ? "—" : row.state === "ended" ? "OK" : "···";
}
function place(row) {
  const match = /^[a-z][a-z0-9+.-]*:\/\/([^\/?#]*)(.*)$/i.exec(row.url || "");
  if (!match) return [row.url || row.name, ""];
  const [, host, path] = match;
  return [path || "/", host];
}
function add(row) {
  row.class = classOf(row);
  [row.path, row.host] = place(row);
  row.text = [row.method, row.url, row.name, row.status, row.error, row.type, row.source, row.class]
    .join(" ").toLowerCase();
  row.end = row.duration === undefined ? undefined : row.start + row.duration;
  rows.set(row.number, row);
}
function removeUpTo(oldest) {
  for (const number of rows.keys()) {
    if (number < oldest) rows.delete(number);
  }
}
// Words must all occur; -word must not occur.
function filterRows() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(word => word && word !== "-");
  const wanted = words.filter(word => !word.startsWith("-"));
  const unwanted = words.filter(word => word.startsWith("-")).map(word => word.slice(1));
  const totals = Object.fromEntries(states.map(([id]) => [id, 0]));
  const test = states.find(([id]) => id === state).at(2);
  shown = [];
  let all = 0;
  for (const row of rows.values()) {
    if (row.number <= hiddenUpTo) continue;
    all += 1;
    const has = word => row.text.includes(word);
    if (!wanted.every(has) || unwanted.some(has)) continue;
    for (const [id, , isIn] of states) if (isIn(row)) totals[id] += 1;
    if (test(row)) shown.push(row);
  }
  shown.sort((a, b) => a.number - b.number);
  let start = Infinity, end = -Infinity;
  for (const row of shown) {
    start = Math.min(start, row.start);
    end = Math.max(end, row.end === undefined ? Date.now() : row.end);
  }
  range = shown.length ? [start, Math.max(end, start + 1)] : [0, 1];
  for (const button of $("states").children) {
    button.querySelector("b").textContent = totals[button.dataset.state] || "";
    button.setAttribute("aria-checked", String(button.dataset.state === state));
    button.tabIndex = button.dataset.state === state ? 0 : -1;
  }
  $("count").textContent = shown.length === all
    ? all.toLocaleString("en") + (all === 1 ? " exchange" : " exchanges")
    : shown.length.toLocaleString("en") + " of " + all.toLocaleString("en");
  $("empty").hidden = shown.length > 0;
  $("empty").textContent = !isLoaded ? "Loading exchanges…"
    : all ? "No exchange matches the filter." : "Waiting for exchanges…";
}
const rowHeight = () => matchMedia("(max-width: 760px)").matches ? 58 : 34;
function newRow() {
  const row = el("div", "row");
  row.setAttribute("role", "option");
  for (const name of ["status", "method", "url", "type", "size", "time", "fall"]) row.append(el("span", name));
  row.firstChild.classList.add("badge");
  row.addEventListener("click", () => select(Number(row.dataset.number), true));
  $("space").before(row);
  return row;
}
function bar(className, start, length, from, to) {
  const element = el("div", className);
  const scale = 100 / Math.max(to - from, 0.001);
  const left = Math.min(Math.max((start - from) * scale, 0), 99.6);
  element.style.left = left + "%";
  element.style.width = Math.max(Math.min(length * scale, 100 - left), 0.2) + "%";
  return element;
}
function fill(element, row, index, height) {
  const [status, method, url, type, bytes, time, fall] = element.children;
  element.id = "row" + row.number;
  element.dataset.number = row.number;
  element.className = "row " + row.class;
  element.style.top = index * height + "px";
  element.setAttribute("aria-selected", String(row.number === selected));
  element.setAttribute("aria-posinset", index + 1);
  element.setAttribute("aria-setsize", shown.length);
  status.textContent = statusText(row);
  method.textContent = visible(row.method || "");
  url.replaceChildren(visible(row.path));
  if (row.attempts > 1) url.append(el("em", "", "×" + row.attempts));
  if (row.source && !["network", "mock"].includes(row.source)) url.append(el("em", "cached", row.source));
  url.append(el("i", "", row.host));
  url.title = visible(row.url || row.name);
  type.textContent = visible(shortType(row.type));
  bytes.textContent = size(row.size);
  time.textContent = duration(row.duration === undefined ? Date.now() - row.start : row.duration);
  fall.replaceChildren(...row.spans.map(([kind, start, length]) =>
    bar(kind, row.start + start, length === null ? Date.now() - row.start - start : length, ...range)));
  const label = [statusText(row), row.method, row.path, row.host, time.textContent];
  element.setAttribute("aria-label", visible(label.join(" ")));
}
function render() {
  const height = rowHeight();
  $("space").style.height = shown.length * height + "px";
  $("head").style.paddingRight = 14 + list.offsetWidth - list.clientWidth + "px";
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 4);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 4);
  while (pool.length < last - first) pool.push(newRow());
  pool.forEach((element, index) => {
    element.hidden = first + index >= last;
    if (element.hidden) {
      element.removeAttribute("id");
    } else {
      fill(element, shown[first + index], first + index, height);
    }
  });
  const active = selected !== null && document.getElementById("row" + selected);
  if (active) list.setAttribute("aria-activedescendant", "row" + selected);
  else list.removeAttribute("aria-activedescendant");
}
function update(keepEnd) {
  const atEnd = keepEnd && list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  filterRows();
  render();
  if (atEnd && list.scrollHeight > list.clientHeight) { list.scrollTop = list.scrollHeight; render(); }
}
function move(step) {
  if (!shown.length) return;
  const index = shown.findIndex(row => row.number === selected);
  const last = shown.length - 1;
  const from = index < 0 ? (step < 0 ? shown.length : -1) : index;
  const next = Math.min(Math.max(from + step, 0), last);
  select(shown[next].number, !$("detail").hidden);
}
function reveal(number) {
  const index = shown.findIndex(row => row.number === number);
  const height = rowHeight();
  if (index < 0) return;
  if (index * height < list.scrollTop) list.scrollTop = index * height;
  const end = (index + 1) * height - list.clientHeight;
  if (end > list.scrollTop) list.scrollTop = end;
}
for (const [id, label] of states) {
  const button = el("button", "", label, el("b"));
  button.type = "button";
  button.dataset.state = id;
  button.setAttribute("role", "radio");
  button.addEventListener("click", () => { state = id; update(); });
  button.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const index = states.findIndex(([other]) => other === state) + step;
    state = states[(index + states.length) % states.length].at(0);
    update();
    $("states").querySelector("[aria-checked=true]").focus();
  });
  $("states").append(button);
}
$("filter").addEventListener("input", () => update());
list.addEventListener("scroll", render, { passive: true });
new ResizeObserver(render).observe(list);
