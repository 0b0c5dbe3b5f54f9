// The filter: words and the keys of Chrome's network panel, over exchanges and their requests.
let state = "all";
const isCached = row => ["cache", "storage", "revalidated"].includes(row.source);
const isRetried = row => (row.tries || []).some(sent => sent.kind === "retry" || sent.kind === "endpoint");
const hasStatus = first => row => row.statuses.some(status => Math.floor(status / 100) === first);
const ofAttempts = ": exchanges with such a status, also of an attempt before the last one";
// The chips: [identifier, text, test, description].
const states = [
  ["all", "All", () => true, "All exchanges"],
  ["1", "1xx", hasStatus(1), "Informational" + ofAttempts], ["2", "2xx", hasStatus(2), "Successful" + ofAttempts],
  ["3", "3xx", hasStatus(3), "Redirects" + ofAttempts], ["4", "4xx", hasStatus(4), "Errors of the client" + ofAttempts],
  ["5", "5xx", hasStatus(5), "Errors of the server" + ofAttempts],
  ["failed", "Failed", row => Boolean(row.error), "Ended with an error, such as one of decoding"],
  ["retried", "Retried", isRetried, "Sent more than once, because an attempt failed"],
  ["cached", "Cached", isCached, "The response came from a cache or a storage"],
  ["cancelled", "Cancelled", row => Boolean(row.cancelled), "Cancelled by the program"],
  ["active", "Active", row => row.state !== "ended", "In progress"],
  ["secrets", "Secrets", row => Boolean(row.secrets), "Sent a token, a password or another secret, also in the body"],
];
const kinds = {
  running: row => row.state !== "ended", "from-cache": row => row.source === "cache", failed: row => Boolean(row.error),
  cancelled: row => Boolean(row.cancelled), secret: row => Boolean(row.secrets), cached: isCached,
  redirected: row => row.statuses.some(status => status >= 301 && status <= 308 && status !== 304),
  retried: row => isRetried(row)
    || partsOf(row).length > 1 && partsOf(row).slice(0, -1).some(sent => sent.error || sent.status >= 400),
};
const matches = (text, wanted) => wanted.includes("*")
  ? new RegExp("^" + wanted.replace(/[^\w*]/g, "\\$&").replaceAll("*", ".*") + "$").test(text) : text.includes(wanted);
const units = { µs: 1e-3, us: 1e-3, ms: 1, s: 1e3, m: 6e4, min: 6e4, h: 36e5 };
const milliseconds = text => parseFloat(text) * (units[/[a-zµ]+/.exec(text)?.[0]] || 1e3);
const bytes = text => parseFloat(text) * ({ k: 1e3, m: 1e6, g: 1e9 }[/[kmg]/.exec(text)?.[0]] || 1);
// Compares a number with a value such as ">1s" or "<10k"; without a sign, the number must be larger.
const compare = (number, value, parse) =>
  value.startsWith("<") ? number < parse(value.slice(1)) : number > parse(value.replace(/^>/, ""));
const hasCode = (row, value) => row.statuses.some(status => matches(String(status), value.replaceAll("x", "*")));
// Each test receives the exchange and the value in lower case.
const keys = {
  "status-code": hasCode, status: hasCode, source: (row, value) => (row.source || "").toLowerCase() === value,
  duration: (row, value) => compare(time(row), value, milliseconds),
  size: (row, value) => compare(row.size || 0, value, bytes),
  secret: (row, value) => (row.secrets || []).some(name => matches(name.toLowerCase(), value)),
  method: (row, value) => partsOf(row).some(sent => (sent.method || "").toLowerCase() === value),
  domain: (row, value) => partsOf(row).some(sent => matches(sent.domain, value)),
  scheme: (row, value) => partsOf(row).some(sent => (sent.url || "").startsWith(value + ":")),
  url: (row, value) => partsOf(row).some(sent => matches((sent.url || sent.name || "").toLowerCase(), value)),
  "mime-type": (row, value) => partsOf(row).some(sent => matches((sent.type || "").toLowerCase(), value)),
  "larger-than": (row, value) => (row.size || 0) > bytes(value),
  "slower-than": (row, value) => time(row) > milliseconds(value),
  is: (row, value) => kinds[value]?.(row) ?? false,
};
// Returns the terms of the filter as tests. A term may begin with "-", and quotes join words.
function terms(text) {
  return (text.toLowerCase().match(/(?:"[^"]*"?|\S)+/g) || []).map(term => {
    const isUnwanted = term.startsWith("-"), plain = term.slice(isUnwanted ? 1 : 0).replaceAll("\"", "");
    const colon = plain.indexOf(":"), test = colon > 0 && keys[plain.slice(0, colon)], value = plain.slice(colon + 1);
    const isComplete = test ? value !== "" : plain !== "";
    return { isUnwanted, isComplete, has: row => test ? test(row, value) : row.text.includes(plain) };
  }).filter(term => term.isComplete);
}
function filterRows() {
  const all = terms($("filter").value), wanted = all.filter(term => !term.isUnwanted);
  const unwanted = all.filter(term => term.isUnwanted);
  const totals = Object.fromEntries(states.map(([id]) => [id, 0]));
  const test = states.find(([id]) => id === state).at(2);
  shown = [];
  let count = 0;
  for (const row of rows.values()) {
    if (row.number > 0 && row.number <= hiddenUpTo) continue;
    count += 1;
    const isFound = wanted.every(term => term.has(row)) || bodyMatches !== null && bodyMatches.has(row.number);
    if (!isFound || unwanted.some(term => term.has(row))) continue;
    for (const [id, , isIn] of states) if (isIn(row)) totals[id] += 1;
    if (test(row)) shown.push(row);
  }
  for (const button of $("states").children) {
    button.querySelector("b").textContent = shortCount(totals[button.dataset.state]);
    button.setAttribute("aria-checked", String(button.dataset.state === state));
    button.tabIndex = button.dataset.state === state ? 0 : -1;
  }
  $("count").textContent = (shown.length === count ? "" : shown.length.toLocaleString("en") + " of ")
    + count.toLocaleString("en") + (count === 1 ? " exchange" : " exchanges");
  showHints();
  $("empty").hidden = shown.length > 0;
  $("empty").textContent = !isLoaded ? "Loading exchanges…"
    : count ? "No exchange matches the filter." : "Waiting for exchanges…";
}
// A count of at most four characters, so that the chips do not move.
const shortCount = count => !count ? "" : count < 1000 ? String(count) : Math.floor(count / 1000) + "k";
// The arrows up and down leave the chips.
function chooseState(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const leave = { ArrowDown: list, ArrowUp: $("filter") }[event.key];
  if (!step && !leave) return;
  event.preventDefault();
  event.stopPropagation();
  if (leave) {
    leave.focus();
    if (leave === list && selectedLine() < 0) move(1);
    return;
  }
  const index = states.findIndex(([other]) => other === state) + step;
  state = states[(index + states.length) % states.length].at(0);
  update();
  $("states").querySelector("[aria-checked=true]").focus();
}
for (const [id, label, , description] of states) {
  const chip = button(label, "", () => { state = id; update(); });
  chip.append(el("b"));
  chip.dataset.state = id;
  chip.title = description;
  chip.setAttribute("role", "radio");
  chip.addEventListener("keydown", chooseState);
  $("states").append(chip);
}
// Shows on which sides of a narrow page further chips are.
function showHints() {
  const { scrollLeft, clientWidth, scrollWidth } = $("states");
  $("states").classList.toggle("before", scrollLeft > 1);
  $("states").classList.toggle("after", scrollLeft + clientWidth < scrollWidth - 1);
}
$("states").addEventListener("scroll", showHints, { passive: true });
new ResizeObserver(showHints).observe($("states"));
// Suggests the keys, with the values of the exchanges.
const mostSuggestions = 40;
$("filter").addEventListener("focus", () => {
  const found = new Set(Object.keys(kinds).map(kind => "is:" + kind));
  for (const row of rows.values()) {
    if (row.source) found.add("source:" + row.source.toLowerCase());
    for (const sent of partsOf(row)) {
      if (sent.status) found.add("status-code:" + sent.status).add("status:" + sent.status);
      if (sent.method) found.add("method:" + sent.method);
      if (sent.domain) found.add("domain:" + sent.domain);
      if (sent.type) found.add("mime-type:" + sent.type.replace(/;.*/s, ""));
    }
    if (found.size > mostSuggestions) break;
  }
  const all = [...found, "duration:>1s", "size:>10k", "larger-than:10k", "slower-than:500ms", "url:", "scheme:"].sort();
  $("suggestions").replaceChildren(...all.map(text => {
    const option = el("option");
    option.value = visible(text);
    return option;
  }));
});
