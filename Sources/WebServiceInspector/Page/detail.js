// The details of the selected exchange, and the keyboard.
let detail = null, tab = "overview", attempt = -1, isLoading = false, isStale = false;
const tabs = [
  ["overview", "Overview"], ["request", "Request"], ["response", "Response"], ["code", "Code"], ["send", "Send"],
];
// - part: The index of a request of the exchange; -1 for the last one.
function select(number, opens, part) {
  const isOther = number !== selected;
  selected = number;
  if (isOther) { attempt = -1; detail = null; clearPanel("Loading…"); }
  if (part !== undefined) attempt = part;
  if (opens) showDetail(true);
  reveal();
  render();
  if ($("detail").hidden) return;
  if (detail) show();
  load();
}
function showDetail(isShown) {
  $("detail").hidden = $("divider").hidden = !isShown;
  $("main").classList.toggle("split", isShown);
}
function close() {
  showDetail(false);
  render();
  list.focus();
}
// A panel never shows another exchange than the selected one, whose row names it.
function clearPanel(text) {
  const row = rows.get(selected);
  $("title").replaceChildren(...(row ? titleNodes(row, "") : []));
  $("copy").hidden = $("copyswift").hidden = true;
  $("panel").replaceChildren(el("p", "note", text));
  $("panel").dataset.row = selected;
  delete $("panel").dataset.shown;
}
const titleNodes = (row, placeholder) => [
  el("span", "badge " + row.class, statusText(row)), el("b", "", row.method || ""),
  withMarks(row.url || row.name, placeholder),
];
// Loads the details, at most one request at a time.
async function load() {
  if (isLoading) { isStale = true; return; }
  isLoading = true;
  do {
    isStale = false;
    const number = selected;
    let loaded = number < 0 ? imported.get(number) : keptDetails(number, false), failure = null;
    if (!loaded) [loaded, failure] = await fetched(number);
    if (number !== selected) continue;
    if (loaded) { detail = loaded; show(); } else if (!detail) clearPanel(failure);
  } while (isStale);
  isLoading = false;
}
// Returns the details of an exchange, or a text with the reason why there are none.
async function fetched(number) {
  let response = null, text = "";
  try {
    response = await fetch("exchanges/" + number);
    text = await response.text();
  } catch {
    const details = keptDetails(number, true);
    return [details, details ? null : "The program has ended, and the page has not received the details."];
  }
  if (response.ok) {
    keep(number, text);
    return [JSON.parse(text), null];
  }
  return [null, response.status === 404 ? "The exchange was removed to limit the memory."
    : "The details cannot be loaded: status " + response.status + "."];
}
function current() {
  const attempts = detail.attempts;
  return attempts[attempt < 0 ? attempts.length - 1 : Math.min(attempt, attempts.length - 1)];
}
function show() {
  const row = detail.summary;
  row.class = classOf(row);
  $("title").replaceChildren(...titleNodes(row, detail.placeholder));
  $("copy").hidden = !current()?.curl;
  $("copyswift").hidden = !current();
  for (const button of $("tabs").children) {
    const isSelected = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(isSelected));
    button.tabIndex = isSelected ? 0 : -1;
    if (isSelected) $("panel").setAttribute("aria-labelledby", button.id);
  }
  // An update does not replace what is being changed.
  const shown = row.number + tab, isUpdate = $("panel").dataset.shown === shown;
  if (tab === "send" && isUpdate) return;
  const top = isUpdate ? $("panel").scrollTop : 0;
  $("panel").replaceChildren(...panelNodes(row));
  [$("panel").dataset.row, $("panel").dataset.shown] = [row.number, shown];
  $("panel").scrollTop = top;
  markFound();
}
// An error of the page replaces the panel, and is reported like an uncaught exception.
function panelNodes(row) {
  try {
    return panels[tab](row);
  } catch (error) {
    reportError(error);
    return [el("p", "error", "The page has an error and cannot show this panel: " + error)];
  }
}
const panels = {
  send: () => sendNodes(),
  code: () => codeNodes(),
  overview(row) {
    const pairs = [["Result", result(row)], ["Started", localTime(row.start)]];
    if (row.duration !== undefined) pairs.push(["Duration", duration(row.duration)]);
    if (row.size !== undefined && !(row.composite && !row.size)) {
      const type = row.type && !detail.messages ? ", " + row.type : "";
      pairs.push([detail.messages ? "Messages received" : "Body", size(row.size) + type]);
    }
    if (row.source) pairs.push(["Source", row.source]);
    const last = current();
    if (last && last.protocol) {
      pairs.push(["Connection", last.protocol + (last.isReused ? ", reused connection" : ", new connection")]);
    }
    if (last?.address) pairs.push(["Server", last.address]);
    if (row.attempts > 1) pairs.push(["Attempts", String(row.attempts)]);
    if (row.secrets) pairs.push(["Secrets sent", row.secrets.join(", ")]);
    if (row.parent) pairs.push(["Sent for", rowLink(row.parent)]);
    if (last?.received) pairs.push(["Received", size(last.received) + ", head and body"]);
    const causes = detail.causes?.length ? detail.causes : (last?.causes || []);
    causes.forEach((cause, index) => pairs.push([index ? "" : "Caused by", el("span", "error cause", cause)]));
    const children = childrenOf(row);
    if (children.length) pairs.push(["Requests", el("span", "links", ...children.map(child => rowLink(child.number)))]);
    const nodes = [fields(pairs, false, detail.placeholder), el("h3", "", "Timeline"), chart(row)];
    if (row.number < 0) nodes.push(el("p", "note", "This exchange is imported. The inspector has not redacted it."));
    if (detail.explanation.length) {
      const lines = detail.explanation.map(line => el("p", "note", readable(line)));
      nodes.push(el("details", "words", el("summary", "", "In words"), ...lines));
    }
    return nodes;
  },
  request() {
    const sent = current();
    if (!sent) return withoutRequest(detail.summary);
    const query = pairsOf(/\?([^#]*)/.exec(sent.url)?.[1] ?? "");
    return [
      ...attemptButtons(), fields([[sent.method, sent.url]], true, detail.placeholder),
      ...(query.length ? [el("h3", "", "Query"), fields(query, true, detail.placeholder)] : []),
      el("h3", "", sent.sentHeaders ? "Header fields as sent" : "Header fields"),
      headerFields(sent.sentHeaders || sent.requestHeaders),
      ...(selected < 0 || sent.sentHeaders ? [] : [el("p", "note", passedNote)]), el("h3", "", "Body"),
      ...bodyNodes(sent.requestBody, detail.placeholder, sent.url),
    ];
  },
  response(row) {
    const sent = current();
    const response = sent ? sent.response : detail.response;
    const nodes = sent ? attemptButtons() : response ? [el("p", "note", "No request was sent for this response.")]
      : withoutRequest(row);
    if (sent && sent.error) {
      nodes.push(el("p", "error", sent.error));
      for (const cause of sent.causes || []) nodes.push(el("p", "error cause", "Caused by " + cause));
      const body = sent.response ? size(sent.response.body.size) + " of the body were received." : null;
      if (!detail.messages) nodes.push(el("p", "note", body || "No head of a response was received."));
    }
    if (sent && sent.cancelled) nodes.push(el("p", "note", "The request was cancelled."));
    if (!response) {
      const isOver = sent ? sent.error || sent.cancelled : row.state === "ended";
      return isOver ? nodes : [...nodes, el("p", "note", "No response yet.")];
    }
    // The error of a step, such as the decoding, belongs to the last response.
    const isLast = !sent || sent === detail.attempts.at(-1);
    if (isLast && row.error && !sent?.error) nodes.push(el("p", "error", row.error));
    const hasMessages = detail.messages && sent === detail.attempts.at(-1);
    const content = hasMessages ? messageNodes(detail.messages, detail.placeholder)
      : bodyNodes(response.body, detail.placeholder, sent ? sent.url : row.url || row.name);
    return [
      ...nodes, fields([["Status", String(response.status)]], true), el("h3", "", "Header fields"),
      headerFields(response.headers), el("h3", "", hasMessages ? "Messages" : "Body"), ...content,
    ];
  },
};
const childrenOf = row => [...rows.values()].filter(other => other.parent === row.number);
// What is shown instead of the request of an exchange that has sent none itself.
function withoutRequest(row) {
  const children = childrenOf(row);
  return [el("p", "note", children.length ? "The requests of this exchange are listed as exchanges of their own:"
    : "No request was sent."), ...children.map(child => rowLink(child.number))];
}
function result(row) {
  if (row.state === "active") return "In progress";
  if (row.state === "streaming") {
    return "Status " + row.status + (detail.messages ? ", the connection is open" : ", the body is being received");
  }
  if (row.cancelled) return "Cancelled" + (row.status ? " after status " + row.status : "");
  if (row.error) return el("span", "error", (row.status ? "Status " + row.status + ": " : "") + row.error);
  return row.status ? "Status " + row.status : "Completed";
}
function rowLink(number) {
  const row = rows.get(number);
  if (!row) return "an exchange that was removed";
  return button(statusText(row) + " " + row.name, "link", () => select(number, true));
}
const passedNote =
  "As passed to the session. The transport adds fields such as Host, User-Agent and Content-Length; " +
  "a CurlSession with recordsRequestHeaders in its configuration reports them.";
function headerFields(pairs) {
  return pairs.length ? fields(pairs, true, detail.placeholder) : el("p", "note", "No header fields.");
}
const statusOf = sent => sent.response ? sent.response.status : 0;
function attemptButtons() {
  if (detail.attempts.length < 2) return [];
  const group = el("div", "attempts");
  detail.attempts.forEach((sent, index) => {
    const button = el("button", "", "Attempt " + sent.number + (statusOf(sent) ? " · " + statusOf(sent) : ""));
    button.type = "button";
    button.setAttribute("aria-pressed", String(sent === current()));
    button.addEventListener("click", () => { attempt = index; reveal(); render(); show(); });
    group.append(button);
  });
  return [group];
}
// The attempts with their phases, the requests sent for the exchange, and the decisions, on the time
// axis of the exchange.
function chart(row) {
  const children = childrenOf(row).map(child => ({ ...child, kind: "request", start: child.start - row.start }));
  const entries = [
    ...detail.attempts.map(sent => ({ ...sent, kind: "attempt" })), ...detail.events, ...children,
  ].sort((a, b) => a.start - b.start);
  const ends = entries.map(entry => entry.start + (entry.duration || 0));
  const end = Math.max(row.duration === undefined ? Date.now() - row.start : row.duration, 0.001, ...ends);
  const element = el("div", "chart"), track = (kind, start, length) =>
    el("div", "track", bar(kind, start / end, (start + length) / end));
  if (entries.length) element.append(el("span"), scaleNode(end), el("span"));
  entries.forEach((entry, index) => {
    const hasEnded = entry.duration !== undefined;
    if (entry.kind === "attempt") { element.append(...attemptNodes(entry, track, end)); return; }
    if (entry.kind === "request") {
      element.append(rowLink(entry.number), track("attempt", entry.start, hasEnded ? entry.duration : end),
        el("span", "value", hasEnded ? duration(entry.duration) : "…"));
      return;
    }
    const next = entries.slice(index + 1).find(({ kind }) => kind === "attempt");
    const target = entry.kind === "redirect" && next ? "to " + next.url + " " : "";
    const text = readable(target + entry.detail.replace(/^to another origin/, "(another origin)"));
    element.append(el("span", "label", entry.kind));
    if (!hasEnded) { element.append(el("span", "text", text || "at " + duration(entry.start))); return; }
    element.append(track(entry.kind === "wait" ? "pause" : "other", entry.start, entry.duration),
      el("span", "value", duration(entry.duration)));
    if (text) element.append(el("span", "text", text));
  });
  return entries.length ? element : el("p", "note", "No request was sent.");
}
// The ticks of a duration.
function scaleNode(length) {
  const step = niceStep(length / 4), scale = el("div", "track scale");
  for (let tick = 0; tick < length * 0.9; tick += step) {
    const label = el("span", "", tick ? duration(tick) : "0");
    label.style.left = tick / length * 100 + "%";
    scale.append(label);
  }
  return scale;
}
const phaseClasses = {
  "name lookup": "lookup", connect: "connect", TLS: "tls", waiting: "waiting", receiving: "receiving",
};
function attemptNodes(sent, bars, end) {
  const isOpen = sent.duration === undefined;
  const status = statusOf(sent);
  const className = classOf({
    status, error: sent.error, cancelled: sent.cancelled, state: isOpen ? "active" : "ended",
  });
  const label = el("span", "label strong", "Attempt " + sent.number);
  if (status || sent.error) label.append(el("b", className, status || "ERR"));
  let track = null;
  if (sent.phases.length) {
    const all = sent.phases.map(([name, start, length]) => bars(phaseClasses[name], sent.start + start, length));
    track = el("div", "track", ...all.map(node => node.firstChild));
  } else {
    const failed = className === "failed" || className === "server";
    track = bars(failed ? "failed" : "attempt", sent.start, isOpen ? end - sent.start : sent.duration);
  }
  const nodes = [label, track, el("span", "value", isOpen ? "…" : duration(sent.duration))];
  if (sent.error) nodes.push(el("span", "text error", sent.error));
  if (sent.phases.length) {
    const legend = sent.phases.map(([name, , time]) =>
      el("span", phaseClasses[name], name + " " + duration(time)));
    nodes.push(el("div", "text phases", ...legend));
  }
  return nodes;
}
function choose(id) { tab = id; if (detail) show(); }
for (const [id, label] of tabs) {
  const button = el("button", "", label);
  button.type = "button";
  button.id = "tab-" + id;
  button.dataset.tab = id;
  button.setAttribute("role", "tab");
  button.setAttribute("aria-controls", "panel");
  button.addEventListener("click", () => choose(id));
  $("tabs").append(button);
}
$("back").addEventListener("click", close);
$("filter").addEventListener("keydown", event => {
  if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); list.focus(); move(0); }
  if (event.key === "Escape") {
    event.stopPropagation();
    $("filter").value = "";
    bodyMatches = null;
    update();
    list.focus();
  }
});
const page = () => Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
// The arrows open and close an exchange in the list.
function unfold(opens) {
  if (!opens && opened.has(selected)) attempt = -1;
  if (selected !== null) toggle(selected, opens);
}
const pageKeys = {
  "/": () => { $("filter").focus(); $("filter").select(); }, c: () => copyCode("curl"), s: () => copyCode("swift"),
};
const listKeys = {
  ArrowRight: () => unfold(true), ArrowLeft: () => unfold(false), "+": () => zoomBy(0.5), "-": () => zoomBy(2),
  0: () => setZoom(null), "<": () => pan(-0.25), ">": () => pan(0.25),
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1),
  PageDown: () => move(page()), PageUp: () => move(-page()),
  Home: () => move(-Infinity), End: () => move(Infinity),
  Enter: () => { if (selected !== null) { select(selected, true); $("title").focus(); } },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea, .divider")) return;
  const inList = event.target === list || event.target === document.body;
  const inDetail = $("detail").contains(event.target);
  let action = pageKeys[event.key] ?? (inList ? listKeys[event.key] : null);
  if (event.key === "Escape" && !$("detail").hidden) action = close;
  const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
  if (isSideways && (inDetail || inList) && !$("detail").hidden) {
    const index = tabs.findIndex(([id]) => id === tab) + (event.key === "ArrowRight" ? 1 : -1);
    action = () => {
      choose(tabs[(index + tabs.length) % tabs.length].at(0));
      if (inDetail && event.target.getAttribute("role") === "tab") $("tab-" + tab).focus();
    };
  }
  if (action) { event.preventDefault(); action(); }
});
// The width of the details, in percent of the window; the rest is that of the list.
function setWidth(percent) {
  const width = Math.round(Math.min(Math.max(percent, 20), 80));
  $("detail").style.flexBasis = width + "%";
  $("divider").setAttribute("aria-valuenow", width);
}
$("divider").addEventListener("pointerdown", event => $("divider").setPointerCapture(event.pointerId));
$("divider").addEventListener("pointermove", event => {
  if ($("divider").hasPointerCapture(event.pointerId)) setWidth(100 - event.clientX / innerWidth * 100);
});
$("divider").addEventListener("keydown", event => {
  const step = { ArrowLeft: 2, ArrowRight: -2 }[event.key];
  if (!step) return;
  event.preventDefault();
  setWidth(Number($("divider").getAttribute("aria-valuenow")) + step);
});
setWidth(46);
