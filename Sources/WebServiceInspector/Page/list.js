// The list: only the visible rows have elements, so a filter takes the same time for any number of
// exchanges.
const rows = new Map();  // by number
let shown = [], selected = null, hiddenUpTo = 0, isLoaded = false;
// The lines of the list: [exchange], and [exchange, index] for the requests of an opened one.
let lines = [];
const opened = new Set();
let sorting = { key: "number", isDescending: false };
const pool = [];
const list = $("list");
// The color of a row. The status precedes the error, which can be that of a refused status.
function classOf(row) {
  if (row.cancelled) return "cancelled";
  switch (Math.floor((row.status || 0) / 100)) {
  case 1: case 2: return row.error ? "failed" : "ok";
  case 3: return "moved";
  case 4: return "client";
  case 5: return "server";
  default: return row.error ? "failed" : row.state === "ended" ? "ok" : "pending";
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
// Adds what the list and the filter need of an exchange or of one of its requests.
function prepare(row, state) {
  row.class = classOf({ ...row, state });
  [row.path, row.host] = place(row);
  row.domain = row.host.replace(/:\d*$/, "").toLowerCase();
}
const partsOf = row => row.tries || [row];
function add(row) {
  prepare(row, row.state);
  for (const sent of row.tries || []) prepare(sent, sent.duration === undefined ? "active" : "ended");
  row.statuses = [...new Set([...partsOf(row), row].map(sent => sent.status).filter(Boolean))];
  row.host = [row.service, row.host].filter(Boolean).join(" · ");
  row.text = [row, ...(row.tries || [])]
    .flatMap(sent => [sent.service, sent.method, sent.url, sent.name, sent.status, sent.error, sent.type, sent.source])
    .concat(row.class, row.secrets).join(" ").toLowerCase();
  row.end = row.duration === undefined ? undefined : row.start + row.duration;
  rows.set(row.number, row);
}
// The rows of an imported archive have negative numbers. The others are in ascending order.
function removeUpTo(oldest) {
  for (const number of rows.keys()) {
    if (number >= oldest) break;
    if (number > 0) { rows.delete(number); opened.delete(number); }
  }
}
const time = row => row.duration === undefined ? Date.now() - row.start : row.duration;
const sortValues = {
  number: row => row.number, status: row => row.status || 0, method: row => row.method || "",
  url: row => row.path, type: row => shortType(row.type), size: row => row.size || 0, time,
};
function sortRows() {
  const value = sortValues[sorting.key], sign = sorting.isDescending ? -1 : 1;
  const keys = new Map(shown.map(row => [row, value(row)]));
  shown.sort((a, b) => {
    const [first, second] = [keys.get(a), keys.get(b)];
    return first < second ? -sign : first > second ? sign : a.number - b.number;
  });
}
// Sorts by a column: ascending, descending, then in the order of arrival again.
function sortBy(key) {
  if (sorting.key !== key) sorting = { key, isDescending: false };
  else if (!sorting.isDescending) sorting.isDescending = true;
  else sorting = { key: "number", isDescending: false };
  update();
}
function showSorting() {
  for (const head of document.querySelectorAll("#head [data-sort]")) {
    const isUsed = head.dataset.sort === sorting.key;
    head.dataset.order = !isUsed ? "" : sorting.isDescending ? "down" : "up";
    head.title = isUsed ? (sorting.isDescending ? "Sorted in descending order" : "Sorted in ascending order") : "Sort";
  }
  $("sort").value = sorting.key + (sorting.isDescending ? "-" : "");
}
function makeLines() {
  lines = [];
  for (const row of shown) {
    lines.push([row]);
    if (opened.has(row.number)) (row.tries || []).forEach((_, index) => lines.push([row, index]));
  }
}
const rowHeight = () => matchMedia("(max-width: 760px)").matches ? 58 : 34;
function newRow() {
  const row = el("div", "row");
  row.setAttribute("role", "option");
  for (const name of ["status", "method", "url", "type", "size", "time", "fall"]) row.append(el("span", name));
  row.firstChild.classList.add("badge");
  row.addEventListener("click", event => {
    const number = Number(row.dataset.number), index = row.dataset.index;
    if (event.target.classList.contains("more")) toggle(number);
    else select(number, true, index === undefined ? undefined : Number(index));
  });
  $("space").before(row);
  return row;
}
// Shows or hides the requests of an exchange as rows of their own.
function toggle(number, opens = !opened.has(number)) {
  if (!rows.get(number)?.tries) return;
  if (opens) opened.add(number); else opened.delete(number);
  update();
}
// Returns a bar from one share of the width to another; those outside of it are hidden.
function bar(className, from, to) {
  const element = el("div", className), left = Math.min(Math.max(from, 0), 0.996);
  element.hidden = from > 1 || to < 0;
  element.style.left = left * 100 + "%";
  element.style.width = Math.max(Math.min(to, 1) - left, 0.002) * 100 + "%";
  return element;
}
function fill(element, [row, index], position, height) {
  const [status, method, url, type, bytes, elapsed, fall] = element.children;
  const sent = index === undefined ? row : row.tries[index], isPart = sent !== row;
  element.id = "row" + row.number + (isPart ? "-" + index : "");
  element.dataset.number = row.number;
  if (isPart) element.dataset.index = index; else delete element.dataset.index;
  element.className = "row " + sent.class + (isPart ? " part" : "");
  element.style.top = position * height + "px";
  element.setAttribute("aria-selected", String(isSelected(row, index)));
  element.setAttribute("aria-posinset", position + 1);
  element.setAttribute("aria-setsize", lines.length);
  status.textContent = statusText(isPart ? { ...sent, state: sent.duration === undefined ? "active" : "ended" } : row);
  method.textContent = visible(sent.method || "");
  url.replaceChildren(visible((row.parent ? "↳ " : "") + sent.path));
  if (row.tries && !isPart) {
    url.append(el("em", "more", (opened.has(row.number) ? "▾ " : "▸ ") + row.attempts + " requests"));
  }
  if (!isPart && row.source && !["network", "mock"].includes(row.source)) url.append(el("em", "cached", row.source));
  if (row.composite && row.url) url.append(el("em", "", "download"));
  if (row.secrets && !isPart) {
    url.append(el("em", "secret", "secret"));
    url.lastChild.title = visible("Secrets were sent: " + row.secrets.join(", "));
  }
  url.append(el("i", "", sent.host));
  url.title = visible(sent.url || row.name);
  type.textContent = visible(shortType(sent.type));
  bytes.textContent = row.composite && !sent.size ? "" : size(sent.size);
  elapsed.textContent = duration(
    isPart && sent.duration === undefined ? time(row) - sent.start : isPart ? sent.duration : time(row));
  // An exchange that has sent no request itself has a bar as well.
  const spans = isPart ? [["attempt", sent.start, sent.duration ?? null]]
    : row.spans.length ? row.spans : [["pause", 0, row.duration ?? null]];
  fall.replaceChildren(...spans.map(([kind, start, length]) =>
    bar(kind, share(row.start + start), share(length === null ? Date.now() : row.start + start + length))));
  const label = [statusText(sent), sent.method, sent.path, sent.host, elapsed.textContent];
  element.setAttribute("aria-label", visible((isPart ? "Request " + (index + 1) + ": " : "") + label.join(" ")));
}
// - isScroll: Whether only the scroll position has changed, so that rows which remain visible are
//   not filled again.
function render(isScroll = false) {
  const height = rowHeight();
  if (!isScroll) drawScale();
  $("space").style.height = lines.length * height + "px";
  $("head").style.paddingRight = 14 + list.offsetWidth - list.clientWidth + "px";
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 4);
  const last = Math.min(lines.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 4);
  const keepsRows = isScroll && pool.length >= last - first;
  while (pool.length < last - first) pool.push(newRow());
  const start = Math.floor(first / pool.length) * pool.length;
  pool.forEach((element, index) => {
    const position = start + index + (start + index < first ? pool.length : 0);
    element.hidden = position >= last;
    if (element.hidden) {
      element.removeAttribute("id");
    } else if (!keepsRows || element.position !== position) {
      fill(element, lines[position], position, height);
    }
    element.position = element.hidden ? undefined : position;
  });
  const active = list.querySelector(".row[aria-selected=true]:not([hidden])");
  if (active) list.setAttribute("aria-activedescendant", active.id);
  else list.removeAttribute("aria-activedescendant");
}
function update(keepEnd) {
  const atEnd = keepEnd && list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  filterRows();
  sortRows();
  makeLines();
  showSorting();
  makeAxis();
  render();
  if (atEnd && list.scrollHeight > list.clientHeight) { list.scrollTop = list.scrollHeight; render(); }
}
// A row of a request is selected if its exchange is opened and that request was chosen.
function isSelected(row, index) {
  if (row.number !== selected) return false;
  const chosen = opened.has(row.number) && attempt >= 0 ? attempt : undefined;
  return index === chosen;
}
function selectedLine() {
  return lines.findIndex(([row, index]) => isSelected(row, index));
}
function move(step) {
  if (!lines.length) return;
  const index = selectedLine();
  const last = lines.length - 1;
  const from = index < 0 ? (step < 0 ? lines.length : -1) : index;
  const [row, part] = lines[Math.min(Math.max(from + step, 0), last)];
  select(row.number, !$("detail").hidden, part === undefined ? -1 : part);
}
function reveal() {
  const index = selectedLine();
  const height = rowHeight();
  if (index < 0) return;
  if (index * height < list.scrollTop) list.scrollTop = index * height;
  const end = (index + 1) * height - list.clientHeight;
  if (end > list.scrollTop) list.scrollTop = end;
}
$("sort").append(el("option", "", "In order"));
$("sort").firstChild.value = "number";
for (const head of document.querySelectorAll("#head [data-sort]")) {
  head.addEventListener("click", () => sortBy(head.dataset.sort));
  $("sort").append(...["", "-"].map(order => {
    const option = el("option", "", head.textContent + (order ? " ↓" : " ↑"));
    option.value = head.dataset.sort + order;
    return option;
  }));
}
$("sort").addEventListener("change", () => {
  const [key, isDescending] = $("sort").value.split(/(?=-)/);
  sorting = { key, isDescending: isDescending !== undefined };
  update();
});
list.addEventListener("scroll", () => render(true), { passive: true });
new ResizeObserver(() => render()).observe(list);
