// The details of the selected exchange.
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
  showUnlisted();
  reveal();
  render();
  if ($("detail").hidden) return;
  if (detail) show();
  load();
}
// Shows that the list does not contain the row of the details.
function showUnlisted() {
  $("unlisted").hidden = selected === null || !rows.has(selected) || shown.some(row => row.number === selected);
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
// - sent: The attempt that is shown instead of the whole exchange.
function titleNodes(row, placeholder, sent) {
  const status = sent && { ...sent, status: statusOf(sent), state: sent.duration === undefined ? "active" : "ended" };
  const isLast = sent === detail?.attempts.at(-1), className = status ? attemptClass(row, status, isLast) : row.class;
  return [
    el("span", "badge " + className, statusText(status ?? row)), sent ? el("em", "part", attemptText(sent)) : null,
    el("b", "", (sent ?? row).method || ""), withBreaks(withMarks((sent ?? row).url || row.name, placeholder)),
    !sent && isTyped(row) ? el("em", "part", row.name) : null,
  ].filter(Boolean);
}
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
  $("title").replaceChildren(...titleNodes(row, detail.placeholder, isOfAttempt() ? current() : undefined));
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
  overview,
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
    const nodes = sent ? attemptButtons() : withoutRequest(row);
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
      : bodyNodes({ ...response.body, wrong: isLast ? wrongPlace(row.error) : undefined }, detail.placeholder,
        sent ? sent.url : row.url || row.name);
    return [
      ...nodes, fields([["Status", String(response.status)]], true), el("h3", "", "Header fields"),
      headerFields(response.headers), el("h3", "", hasMessages ? "Messages" : "Body"), ...content,
    ];
  },
};
// What is shown instead of the request of an exchange that has sent none itself.
function withoutRequest(row) {
  const children = childrenOf(row);
  if (!children.length) return [el("p", "note", noRequest(row))];
  return [el("p", "note", children.length === 1 ? "This exchange was sent as another one, which contains the request:"
    : "This exchange was sent as other ones, which contain the requests:"), links(children)];
}
const noRequest = row => row.source === "cache" || row.source === "storage"
  ? "No request was sent: the response came from the " + row.source + "." : "No request was sent.";
const passedNote =
  "As passed to the session. The transport adds fields such as Host, User-Agent and Content-Length; " +
  "a CurlSession with recordsRequestHeaders in its configuration reports them.";
function headerFields(pairs) {
  return pairs.length ? fields(pairs, true, detail.placeholder) : el("p", "note", "No header fields.");
}
const statusOf = sent => sent.response ? sent.response.status : 0;
// - withAll: Whether the exchange as a whole can be chosen as well.
function attemptButtons(withAll) {
  if (detail.attempts.length < 2) return [];
  const group = el("div", "attempts"), add = (text, index, isChosen) => {
    const element = button(text, "", () => {
      attempt = index;
      reveal();
      render();
      show();
      $("panel").querySelector(".attempts [aria-pressed=true]")?.focus();
    });
    element.setAttribute("aria-pressed", String(isChosen));
    group.append(element);
  };
  if (withAll) add("Exchange", -1, !isOfAttempt());
  detail.attempts.forEach((sent, index) => {
    const isChosen = sent === current() && !(withAll && !isOfAttempt());
    add("Attempt " + sent.number + (statusOf(sent) ? " · " + statusOf(sent) : ""), index, isChosen);
  });
  return [group];
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
