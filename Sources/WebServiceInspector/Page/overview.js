// The tab "Overview": the result of an exchange or of one of its attempts, and where its time went.
const isOfAttempt = () => attempt >= 0 && detail.attempts.length > 1;
const attemptText = sent => "Attempt " + sent.number + " of " + detail.summary.attempts;
// The exchanges that were sent for another one, by its number.
const childrenOf = row => [...rows.values()].filter(other => other.parent === row.number);
const lengthy = (row, name) => row.duration === undefined ? [] : [[name, duration(row.duration)]];
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
  if (!row) return el("span", "", "an exchange that was removed");
  return button(statusText(row) + " " + row.name, "link", () => select(number, true));
}
const links = all => el("span", "links", ...all.map(row => rowLink(row.number)));
const connectionPairs = sent => !sent ? [] : [
  ...(sent.protocol ? [["Connection", sent.protocol + (sent.isReused ? ", reused" : ", new") + " connection"]] : []),
  ...(sent.address ? [["Server", sent.address]] : []),
  ...(sent.received ? [["Bytes received", size(sent.received) + ", head and body"]] : []),
];
const causePairs = causes => causes.map((cause, index) => [index ? "" : "Caused by", el("span", "error cause", cause)]);
// A link to what was received, also when the program cannot use it.
function receivedPairs(response) {
  if (!response) return [];
  const { status, body } = response, type = body.type ? ", " + body.type : "";
  return [["Received", button("Status " + status + ", " + size(body.size) + type, "link", () => choose("response"))]];
}
function attemptPairs(row) {
  if (!row.tries) return row.attempts > 0 ? [["Attempts", "1"]] : [];
  const lines = row.tries.slice(1, 21).map((sent, index) => {
    const target = sent.kind === "redirect" ? " to " + sent.url : "";
    return el("span", "", attemptName(row, index + 1) + ": " + (reasonOf(sent) || "sent again") + target);
  });
  return [["Attempts", el("span", "lines", row.attempts + " (" + causesOf(row) + ")", ...lines)]];
}
function exchangePairs(row) {
  const last = current(), children = childrenOf(row), pairs = [["Result", result(row)]];
  const isHit = row.source === "cache" || row.source === "storage";
  const isUnsent = isHit && !row.attempts && !children.length;
  if (row.source) pairs.push(["Source", row.source + (isUnsent ? ", no request was sent" : "")]);
  pairs.push(...receivedPairs(last ? last.response : detail.response));
  if (detail.messages) pairs.push(["Messages received", size(row.size)]);
  pairs.push(["Started", localTime(row.start)], ...lengthy(row, "Duration"), ...attemptPairs(row));
  if (row.secrets) pairs.push(["Secrets sent", row.secrets.join(", ")]);
  if (row.parent) pairs.push(["Sent for", rowLink(row.parent)]);
  if (children.length) pairs.push(["Sent as", links(children)]);
  pairs.push(...connectionPairs(last), ...causePairs(detail.causes?.length ? detail.causes : last?.causes || []));
  return pairs;
}
function exchangeNodes(row) {
  const parts = partsOfTime(row), nodes = [
    ...attemptButtons(true), fields(exchangePairs(row), false, detail.placeholder), ...spentNodes(row, parts),
    el("h3", "", "Timeline"), chart(row, parts),
  ];
  if (row.number < 0) nodes.push(el("p", "note", "This exchange is imported. The inspector has not redacted it."));
  if (detail.explanation.length) {
    const lines = detail.explanation.map(line => el("p", "note", readable(line)));
    nodes.push(el("details", "words", el("summary", "", "In words"), ...lines));
  }
  return nodes;
}
// One attempt of several.
function attemptOverview(row, sent) {
  const index = detail.attempts.indexOf(sent), status = statusOf(sent), tried = row.tries?.[index];
  const end = Math.max(sent.duration ?? lengthOf(row) - sent.start, 0.001), start = { ...sent, start: 0 };
  const track = (kind, from, length) => el("div", "track", bar(kind, from / end, (from + length) / end));
  const text = sent.error ? el("span", "error", (status ? "Status " + status + ": " : "") + sent.error)
    : sent.cancelled ? "Cancelled" : status ? "Status " + status : "In progress";
  const pairs = [
    ["Attempt", attemptText(sent).replace("Attempt ", "")],
    ["Sent because", tried && reasonOf(tried) || "it is the first attempt"],
    ["Request", sent.method + " " + sent.url], ["Result", text], ...receivedPairs(sent.response),
    ["Started", duration(sent.start) + " after the start of the exchange"], ...lengthy(sent, "Duration"),
    ...connectionPairs(sent), ...causePairs(sent.causes || []),
  ];
  return [
    ...attemptButtons(true), fields(pairs, false, detail.placeholder), el("h3", "", "Timeline of this attempt"),
    el("div", "chart", el("span"), scaleNode(end), el("span"), ...attemptNodes(row, start, track, end)),
  ];
}
const overview = row => isOfAttempt() ? attemptOverview(row, current()) : exchangeNodes(row);
