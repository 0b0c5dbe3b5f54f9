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
// Adds what the list and the filter need of an exchange or of one of its requests.
function prepare(row, state) {
  row.class = classOf({ ...row, state });
  [row.path, row.host] = place(row);
  row.domain = row.host.replace(/:\d*$/, "").toLowerCase();
}
const partsOf = row => row.tries || [row];
function add(row) {
  prepare(row, row.state);
  (row.tries || []).forEach((sent, index) => {
    prepare(sent);
    sent.class = attemptClass(row, sent, index === row.tries.length - 1);
  });
  row.statuses = [...new Set([...partsOf(row), row].map(sent => sent.status).filter(Boolean))];
  row.host = [row.service, row.host].filter(Boolean).join(" · ");
  row.text = [row, ...(row.tries || [])]
    .flatMap(sent => [
      sent.service, sent.method, sent.url, sent.name, sent.status, sent.error, sent.type, sent.source, sent.reason,
    ]).concat(row.class, row.secrets && secretWords(row)).join(" ").toLowerCase();
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
// What is first in ascending and in descending order.
const orders = {
  status: ["lowest", "highest"], method: ["A", "Z"], url: ["A", "Z"], type: ["A", "Z"],
  size: ["smallest", "largest"], time: ["shortest", "longest"],
};
function showSorting() {
  for (const head of document.querySelectorAll("#head [data-sort]")) {
    const key = head.dataset.sort, isUsed = key === sorting.key, [up, down] = orders[key];
    head.dataset.order = !isUsed ? "" : sorting.isDescending ? "down" : "up";
    head.title = !isUsed ? "Sort: " + up + " first" : (sorting.isDescending ? down : up) + " first; click for "
      + (sorting.isDescending ? "the order of arrival" : down + " first");
    head.setAttribute("aria-label", head.textContent + (isUsed ? ", " : ". ") + head.title);
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
const isNarrow = () => matchMedia("(max-width: 760px)").matches;
const rowHeight = () => isNarrow() ? 58 : 34;
// Shows or hides the requests of an exchange as rows of their own.
function toggle(number, opens = !opened.has(number)) {
  if (!rows.get(number)?.tries) return;
  if (opens) opened.add(number); else opened.delete(number);
  update();
}
// - isScroll: Whether only the scroll position has changed, so that rows which remain visible are
//   not filled again.
function render(isScroll = false) {
  const height = rowHeight();
  if (!isScroll) drawScale();
  $("space").style.height = lines.length * height + "px";
  $("head").style.paddingRight = (isNarrow() ? 10 : 14) + list.offsetWidth - list.clientWidth + "px";
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
// - keepsEnd: Whether a list that is scrolled to its end shows the rows that are added.
function update(keepsEnd) {
  const atEnd = keepsEnd && list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  const place = keepsEnd ? null : selectedPlace();
  filterRows();
  sortRows();
  makeLines();
  showSorting();
  makeAxis();
  render();
  showUnlisted();
  if (atEnd && list.scrollHeight > list.clientHeight) { list.scrollTop = list.scrollHeight; render(); }
  const index = place === null ? -1 : selectedLine();
  if (index >= 0) { list.scrollTop = index * rowHeight() - place; render(true); }
}
// Returns the distance of the selected row from the upper edge of the list, where it remains; `null`
// if it is not visible. A row that returns to the list is shown in the middle.
function selectedPlace() {
  const index = selectedLine(), height = rowHeight();
  if (index < 0) return selected === null ? null : Math.max(0, (list.clientHeight - height) / 2);
  const place = index * height - list.scrollTop;
  return place > -height && place < list.clientHeight ? place : null;
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
$("sort").append(el("option", "", "Arrival"));
$("sort").firstChild.value = "number";
for (const head of document.querySelectorAll("#head [data-sort]")) {
  head.addEventListener("click", () => sortBy(head.dataset.sort));
  $("sort").append(...["", "-"].map(order => {
    const first = orders[head.dataset.sort][order ? 1 : 0];
    const name = head.textContent, isLetter = first.length === 1, letters = order ? " Z–A" : " A–Z";
    const option = el("option", "", isLetter ? name + letters
      : first[0].toUpperCase() + first.slice(1) + " " + name.toLowerCase());
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
