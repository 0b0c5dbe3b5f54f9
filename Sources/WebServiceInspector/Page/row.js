// What the rows of the list show: exchanges, and the attempts of an opened one.
// The color of a row and of its bars, everywhere. The status precedes the error, which can be that of
// a refused status.
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
// The color of an attempt. The last one has that of its exchange, which can fail after the response.
const attemptClass = (row, sent, isLast) => isLast && row.class === "failed" ? "failed"
  : classOf({ ...sent, state: sent.duration === undefined ? "active" : "ended" });
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
const counted = (count, one, many) => count + " " + (count === 1 ? one : many);
// Names why the attempts after the first one were sent, such as "2 retries".
function causesOf(row) {
  const count = kind => row.tries.filter(sent => sent.kind === kind).length;
  const redirects = count("redirect"), retries = count("retry"), others = row.tries.length - 1 - redirects - retries;
  const names = [
    [retries, "retry", "retries"], [redirects, "redirect", "redirects"], [others, "more attempt", "more attempts"],
  ];
  return names.filter(([count]) => count > 0).map(names => counted(...names)).join(", ");
}
// The oldest attempts are dropped if there are many.
const attemptName = (row, index) => "Attempt " + (row.attempts - row.tries.length + index + 1);
const causeNames = { retry: "retry", redirect: "redirect", endpoint: "other endpoint" };
// Returns why an attempt was sent; an empty text for the first one.
function reasonOf(sent) {
  const name = causeNames[sent.kind];
  return name ? name + (sent.reason ? ": " + readable(sent.reason) : "") : "";
}
// Returns the short name of an error, such as "decoding" or "timedOut".
const errorName = error => error.replace(/:[\s\S]*/, "").replace(/^URLError /, "").replace(/ \(-?\d+\)$/, "");
const isTyped = row => row.url !== undefined && !row.name.startsWith(row.method + " ");
function newRow() {
  const row = el("div", "row");
  row.setAttribute("role", "option");
  for (const name of ["status", "method", "url", "type", "size", "time", "fall"]) row.append(el("span", name));
  row.firstChild.classList.add("badge");
  row.addEventListener("click", event => {
    const number = Number(row.dataset.number), index = row.dataset.index;
    if (event.target.classList.contains("more")) toggle(number);
    else select(number, true, index === undefined ? -1 : Number(index));
  });
  $("space").before(row);
  return row;
}
// Returns a bar from one share of the width to another; those outside of it are hidden.
function bar(className, from, to) {
  const element = el("div", className), left = Math.min(Math.max(from, 0), 0.996);
  element.hidden = from > 1 || to < 0;
  element.style.left = left * 100 + "%";
  element.style.width = Math.max(Math.min(to, 1) - left, 0.002) * 100 + "%";
  return element;
}
// Returns the places of the secrets: header, body, URL.
function secretPlaces(row) {
  const placeOf = name => name === "URL" ? name : /(^| in the )body$/.test(name) ? "body" : "header";
  return [...new Set(row.secrets.map(placeOf))].sort();
}
// The words that find an exchange by its secrets. Most secrets in header fields are tokens.
const secretWords = row => [...row.secrets, ...secretPlaces(row).map(place =>
  place === "header" ? "secret token in the header" : "secret in the " + place)].join(" ");
// Returns the marks of an exchange: [class, text, description, text if there is space].
function marks(row) {
  const all = [];
  if (row.tries) {
    const reasons = row.tries.slice(1, 21)
      .map((sent, index) => attemptName(row, index + 1) + ", " + (reasonOf(sent) || "sent again"));
    all.push(["more", (opened.has(row.number) ? "▾ " : "▸ ") + causesOf(row), reasons.join("\n")]);
  }
  if (row.source && !["network", "mock"].includes(row.source)) {
    all.push(["cached", row.source, "The response came from: " + row.source]);
  }
  if (isTyped(row)) all.push(["", row.name, "The type of the request"]);
  else if (row.composite && row.url) all.push(["", "download", "An exchange that sends other requests"]);
  if (row.secrets) all.push([
    "secret", "secret", "Secrets were sent: " + row.secrets.join(", "), ": " + secretPlaces(row).join(", "),
  ]);
  if (row.class === "failed" && row.error) all.push(["fault", errorName(row.error), row.error]);
  return all;
}
function fillURL(element, row, sent, index) {
  const isPart = sent !== row, reason = isPart ? reasonOf(sent) : "", isSame = isPart && sent.path === row.path;
  const path = el("span", isSame ? "path same" : "path", (row.parent ? "↳ " : "") + sent.path);
  const nodes = isPart ? [el("em", "part", attemptName(row, index)), path] : [path];
  for (const [name, text, description, more] of isPart ? [] : marks(row)) {
    nodes.push(el("em", name, text, more && el("span", "", more)));
    nodes.at(-1).title = visible(description);
  }
  element.replaceChildren(...nodes, el("i", reason && "reason", reason || sent.host));
  element.title = visible(sent.url || row.name);
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
  fillURL(url, row, sent, index);
  type.textContent = visible(shortType(sent.type));
  bytes.textContent = row.composite && !sent.size ? "" : size(sent.size);
  elapsed.textContent = duration(
    isPart && sent.duration === undefined ? time(row) - sent.start : isPart ? sent.duration : time(row));
  // An exchange that has sent no request itself has a bar as well.
  const spans = isPart ? [["attempt", sent.start, sent.duration ?? null]]
    : row.spans.length ? row.spans : [[row.url ? "attempt" : "pause", 0, row.duration ?? null]];
  let sending = 0;
  const shares = (start, length) =>
    [share(row.start + start), share(length === null ? Date.now() : row.start + start + length)];
  const bars = spans.map(([kind, start, length]) => {
    const tone = kind === "attempt" && !isPart ? row.tries?.[sending++]?.class ?? row.class : "";
    return bar(kind + " " + tone, ...shares(start, length));
  });
  // A line connects the parts of an exchange.
  if (!isPart && (spans.length > 1 || spans[0][1] > 1)) bars.unshift(bar("whole", ...shares(0, row.duration ?? null)));
  fall.replaceChildren(...bars);
  const label = [
    isPart ? attemptName(row, index) + ":" : "", statusText(sent), sent.method, sent.path, sent.host,
    elapsed.textContent,
    ...(isPart ? [reasonOf(sent)] : marks(row).map(([, text, , more = ""]) => (text + more).replace(/^[▸▾] /, ""))),
  ];
  element.setAttribute("aria-label", visible(label.filter(Boolean).join(" ")));
}
