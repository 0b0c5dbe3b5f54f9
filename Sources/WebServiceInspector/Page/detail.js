// The details of the selected exchange, and the keyboard.
let detail = null, tab = "overview", attempt = -1, isLoading = false, isStale = false;
const tabs = [
  ["overview", "Overview"], ["request", "Request"], ["response", "Response"], ["curl", "cURL"], ["send", "Send"],
];
// - part: The index of a request of the exchange; -1 for the last one.
function select(number, opens, part) {
  if (number !== selected) { attempt = -1; detail = null; clearPanel("Loading…"); }
  if (part !== undefined) attempt = part;
  selected = number;
  if (opens && $("detail").hidden) { $("detail").hidden = false; $("main").classList.add("split"); }
  reveal();
  render();
  if ($("detail").hidden) return;
  if (detail) show();
  load();
}
function close() {
  $("detail").hidden = true;
  $("main").classList.remove("split");
  render();
  list.focus();
}
// A panel never shows another exchange than the selected one.
function clearPanel(text) {
  $("title").replaceChildren();
  $("copy").hidden = true;
  $("panel").replaceChildren(el("p", "note", text));
  delete $("panel").dataset.shown;
}
// Loads the details, at most one request at a time.
async function load() {
  if (isLoading) { isStale = true; return; }
  isLoading = true;
  do {
    isStale = false;
    const number = selected;
    let loaded = null, failure = null;
    if (number < 0) loaded = imported.get(number);
    else [loaded, failure] = await fetched(number);
    if (number !== selected) continue;
    if (loaded) { detail = loaded; show(); } else if (!detail && failure) clearPanel(failure);
  } while (isStale);
  isLoading = false;
}
// Returns the details of an exchange, or a text with the reason why there are none.
async function fetched(number) {
  try {
    const response = await fetch("exchanges/" + number);
    if (response.ok) return [await response.json(), null];
    return [null, response.status === 404 ? "The exchange was removed to limit the memory."
      : "The details cannot be loaded: status " + response.status + "."];
  } catch {
    return [null, "The details cannot be loaded, because the program has ended."];
  }
}
function current() {
  const attempts = detail.attempts;
  return attempts[attempt < 0 ? attempts.length - 1 : Math.min(attempt, attempts.length - 1)];
}
function show() {
  const row = detail.summary;
  row.class = classOf(row);
  $("title").replaceChildren(
    el("span", "badge " + row.class, statusText(row)), el("b", "", row.method || ""),
    withMarks(row.url || row.name, detail.placeholder));
  $("copy").hidden = !current()?.curl;
  for (const button of $("tabs").children) {
    const isSelected = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(isSelected));
    button.tabIndex = isSelected ? 0 : -1;
    if (isSelected) $("panel").setAttribute("aria-labelledby", button.id);
  }
  // An update does not replace what is being changed.
  if (tab === "send" && $("panel").dataset.shown === selected + tab) return;
  const top = $("panel").dataset.shown === selected + tab ? $("panel").scrollTop : 0;
  $("panel").replaceChildren(...panelNodes(row));
  $("panel").dataset.shown = selected + tab;
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
  overview(row) {
    const pairs = [["Result", result(row)], ["Started", new Date(row.start).toISOString().replace("T", " ")]];
    if (row.duration !== undefined) pairs.push(["Duration", duration(row.duration)]);
    if (row.size !== undefined) {
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
    if (row.parent) pairs.push(["Sent for", parentLink(row.parent)]);
    if (last?.received) pairs.push(["Received", size(last.received) + ", head and body"]);
    const causes = detail.causes?.length ? detail.causes : (last?.causes || []);
    causes.forEach((cause, index) => pairs.push([index ? "" : "Caused by", el("span", "error cause", cause)]));
    const nodes = [fields(pairs, false, detail.placeholder), el("h3", "", "Timeline"), chart(row)];
    if (detail.explanation.length) {
      nodes.push(el("h3", "", "Explanation"), ...detail.explanation.map(line => el("p", "note", line)));
    }
    return nodes;
  },
  request() {
    const sent = current();
    if (!sent) return [el("p", "note", "No request was sent.")];
    return [
      ...attemptButtons(), fields([[sent.method, sent.url]], true, detail.placeholder),
      el("h3", "", sent.sentHeaders ? "Header fields as sent" : "Header fields"),
      headerFields(sent.sentHeaders || sent.requestHeaders),
      ...(selected < 0 || sent.sentHeaders ? [] : [el("p", "note", passedNote)]), el("h3", "", "Body"),
      ...bodyNodes(sent.requestBody, detail.placeholder, sent.url),
    ];
  },
  response(row) {
    const sent = current();
    const response = sent ? sent.response : detail.response;
    const nodes = sent ? attemptButtons() : [el("p", "note", "No request was sent for this response.")];
    if (sent && sent.error) {
      nodes.push(el("p", "error", sent.error));
      for (const cause of sent.causes || []) nodes.push(el("p", "error cause", "Caused by " + cause));
      const body = sent.response ? size(sent.response.body.size) + " of the body were received." : null;
      if (!detail.messages) nodes.push(el("p", "note", body || "No head of a response was received."));
    }
    if (sent && sent.cancelled) nodes.push(el("p", "note", "The request was cancelled."));
    if (!response) {
      const isOver = sent && (sent.error || sent.cancelled);
      return isOver ? nodes : [...(sent ? nodes : []), el("p", "note", "No response yet.")];
    }
    const hasMessages = detail.messages && sent === detail.attempts.at(-1);
    const content = hasMessages ? messageNodes(detail.messages, detail.placeholder)
      : bodyNodes(response.body, detail.placeholder, sent ? sent.url : row.url || row.name);
    return [
      ...nodes, fields([["Status", String(response.status)]], true), el("h3", "", "Header fields"),
      headerFields(response.headers), el("h3", "", hasMessages ? "Messages" : "Body"), ...content,
    ];
  },
  curl() {
    const sent = current();
    if (!sent?.curl) return [el("p", "note", sent ? "An imported request has no command." : "No request was sent.")];
    const pre = el("pre", "", sent.curl);
    pre.id = "curl";
    return [...attemptButtons(), pre, el("p", "note", "Secrets are replaced by " + detail.placeholder + ".")];
  },
};
function result(row) {
  if (row.state === "active") return "In progress";
  if (row.state === "streaming") {
    return "Status " + row.status + (detail.messages ? ", the connection is open" : ", the body is being received");
  }
  if (row.cancelled) return "Cancelled" + (row.status ? " after status " + row.status : "");
  if (row.error) return el("span", "error", (row.status ? "Status " + row.status + ": " : "") + row.error);
  return row.status ? "Status " + row.status : "Completed";
}
function parentLink(number) {
  const row = rows.get(number);
  if (!row) return "an exchange that was removed";
  const button = el("button", "", row.name);
  button.type = "button";
  button.addEventListener("click", () => select(number, true));
  return button;
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
// The attempts with their phases, and the decisions, on the time axis of the exchange.
function chart(row) {
  const entries = [
    ...detail.attempts.map(sent => ({ ...sent, kind: "attempt" })), ...detail.events,
  ].sort((a, b) => a.start - b.start);
  const ends = entries.map(entry => entry.start + (entry.duration || 0));
  const end = Math.max(row.duration === undefined ? Date.now() - row.start : row.duration, 0.001, ...ends);
  const element = el("div", "chart");
  for (const entry of entries) {
    if (entry.kind === "attempt") { element.append(...attemptNodes(entry, end)); continue; }
    element.append(el("span", "label", entry.kind));
    if (entry.duration === undefined) { element.append(el("span", "text", entry.detail || "—")); continue; }
    const track = el("div", "track");
    track.append(bar(entry.kind === "wait" ? "pause" : "other", entry.start, entry.duration, 0, end));
    element.append(track, el("span", "value", duration(entry.duration)));
    if (entry.detail) element.append(el("span", "text", entry.detail));
  }
  return entries.length ? element : el("p", "note", "Nothing was sent yet.");
}
const phaseClasses = {
  "name lookup": "lookup", connect: "connect", TLS: "tls", waiting: "waiting", receiving: "receiving",
};
function attemptNodes(sent, end) {
  const isOpen = sent.duration === undefined;
  const status = statusOf(sent);
  const className = classOf({
    status, error: sent.error, cancelled: sent.cancelled, state: isOpen ? "active" : "ended",
  });
  const label = el("span", "label strong", "Attempt " + sent.number);
  if (status || sent.error) label.append(el("b", className, status || "ERR"));
  const track = el("div", "track");
  if (sent.phases.length) {
    for (const [name, start, time] of sent.phases) {
      track.append(bar(phaseClasses[name], sent.start + start, time, 0, end));
    }
  } else {
    const failed = className === "failed" || className === "server";
    const length = isOpen ? end - sent.start : sent.duration;
    track.append(bar(failed ? "failed" : "attempt", sent.start, length, 0, end));
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
async function copy() {
  const sent = detail && current();
  if (!sent) return;
  try {
    await navigator.clipboard.writeText(sent.curl);
    toast("Copied");
  } catch {
    tab = "curl";
    show();
    getSelection().selectAllChildren($("curl"));
    toast("Press Ctrl-C to copy");
  }
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
$("copy").addEventListener("click", copy);
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
const listKeys = {
  ArrowRight: () => unfold(true), ArrowLeft: () => unfold(false), "+": () => zoomBy(0.5), "-": () => zoomBy(2),
  0: () => setZoom(null),
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1),
  PageDown: () => move(page()), PageUp: () => move(-page()),
  Home: () => move(-Infinity), End: () => move(Infinity),
  Enter: () => { if (selected !== null) { select(selected, true); $("title").focus(); } },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const inList = event.target === list || event.target === document.body;
  const inDetail = $("detail").contains(event.target);
  let action = inList ? listKeys[event.key] : null;
  if (event.key === "/") action = () => { $("filter").focus(); $("filter").select(); };
  if (event.key === "c") action = copy;
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
