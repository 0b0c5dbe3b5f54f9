// Where the time of an exchange went: the phases of its attempts, the events that took time, and what
// happened between them, as far as the events show it.
const phaseClasses = {
  queue: "queue", "name lookup": "lookup", connect: "connect", TLS: "tls", waiting: "waiting", receiving: "receiving",
};
const phaseTexts = {
  queue: "queue of the session: the request was not begun, for example because all connections were in use",
  "name lookup": "looking up the host name", connect: "connecting", TLS: "TLS handshake",
  waiting: "waiting for the server's response", receiving: "receiving the body",
};
const eventTexts = {
  refresh: "refreshing the credential", storage: "storage", body: "receiving the streamed body", handler: "handler",
};
const lengthOf = row => row.duration ?? Math.max(Date.now() - row.start, 0);
// Returns the retry that a pause precedes.
const retryBefore = pause =>
  detail.events.findLast(event => event.kind === "retry" && event.start <= pause.start + 0.05);
function textOf(event) {
  const name = eventTexts[event.kind] ?? event.kind;
  if (event.kind !== "wait") return event.detail ? name + ": " + readable(event.detail) : name;
  if (event.detail) return "pause " + readable(event.detail);
  const retry = retryBefore(event);
  return retry ? "pause before the retry: " + readable(retry.detail) : "pause";
}
// Returns all that took time, from its start to its end.
function intervalsOf(row, children) {
  const total = lengthOf(row), found = [];
  const add = (from, length, className, text) =>
    found.push({ from, to: length === undefined ? total : from + length, className, text });
  for (const sent of detail.attempts) {
    add(sent.start, sent.duration, "attempt", sent.phases.length
      ? "attempt, outside of the phases that the session measures"
      : "attempt: waiting for the response and receiving it");
    for (const [name, start, length] of sent.phases) {
      add(sent.start + start, length, phaseClasses[name], phaseTexts[name] ?? name);
    }
  }
  for (const event of detail.events) {
    if (event.duration) add(event.start, event.duration, event.kind === "wait" ? "pause" : "other", textOf(event));
  }
  for (const child of children) add(child.start - row.start, child.duration, "attempt", "request " + child.name);
  return found.filter(({ from, to }) => to > from);
}
// Names an interval in which nothing is recorded: [short name, description].
// - starts: The times at which the requests of the exchange were sent.
function gapNames(row, starts, from, to) {
  const isNear = ({ start }) => start >= from - 0.1 && start <= to + 0.1;
  const has = kind => detail.events.some(event => event.kind === kind && isNear(event));
  const isBefore = starts.some(start => start >= to - 0.1), isAfter = starts.some(start => start < from);
  if (has("joined")) return ["shared", "waiting for the response to an equal request"];
  if (has("coalescing")) return ["shared", "waiting for the response to an identical request"];
  if (has("queued")) return ["queue", "waiting for the end of an equal request"];
  if (has("cache") && !isAfter) return ["cache", "cache lookup"];
  if (!isBefore && isAfter && detail.messages) return ["open", "the connection was open"];
  if (!isBefore && row.state === "streaming") return ["body", "receiving the streamed body"];
  if (!isBefore && row.state === "active") return ["in progress", "in progress"];
  if (!isBefore && isAfter) return ["after", "after the last response: validation, storing, interceptors and decoding"];
  if (!isBefore) return ["interceptors", "interceptors, without a request"];
  if (!isAfter) return ["before", "before the first attempt: interceptors and the encoding of the request"];
  if (has("redirect")) return ["redirect", "between the attempts: following the redirect"];
  return ["between", "between the attempts: interceptors"];
}
// Divides the duration of an exchange into parts that do not overlap; of those that do, the part that
// began last counts.
function partsOfTime(row) {
  const total = lengthOf(row), children = childrenOf(row), parts = [];
  const intervals = intervalsOf(row, children).sort((a, b) => a.from - b.from);
  const starts = [...detail.attempts.map(sent => sent.start), ...children.map(child => child.start - row.start)];
  const times = new Set([0, total, ...intervals.flatMap(({ from, to }) => [from, to])]);
  const edges = [...times].filter(time => time >= 0 && time <= total).sort((a, b) => a - b);
  let active = [], next = 0;
  for (let index = 0; index + 1 < edges.length; index += 1) {
    const [from, to] = [edges[index], edges[index + 1]];
    while (next < intervals.length && intervals[next].from <= from) active.push(intervals[next++]);
    active = active.filter(interval => interval.to > from);
    const inner = active.reduce((best, interval) => best && (best.from > interval.from
      || best.from === interval.from && best.to < interval.to) ? best : interval, null);
    const before = parts.at(-1), part = inner ?? { className: "gap", isGap: true };
    if (before && before.part === part || before?.part.isGap && part.isGap) before.to = to;
    else parts.push({ part, from, to });
  }
  return parts.map(({ part, from, to }) => {
    const [label, text] = part.isGap ? gapNames(row, starts, from, to) : ["", part.text];
    return { isGap: part.isGap, className: part.className, label, text, from, to };
  });
}
const mostParts = 6;
// Returns the parts of the duration, the longest first. Parts with the same text are added.
function spentNodes(row, parts) {
  const total = lengthOf(row), sums = new Map();
  if (total <= 0) return [];
  for (const { className, text, from, to } of parts) {
    const sum = sums.get(text) ?? { className, text, length: 0, count: 0 };
    sums.set(text, { ...sum, length: sum.length + to - from, count: sum.count + 1 });
  }
  const all = [...sums.values()].sort((a, b) => b.length - a.length);
  const most = all.filter(({ length }, index) => index < mostParts && length >= total * 0.01);
  const rest = total - most.reduce((sum, { length }) => sum + length, 0);
  if (rest > total * 0.005) most.push({ className: "gap", text: "other", length: rest, count: 1 });
  const list = el("div", "spent");
  for (const { className, text, length, count } of most) {
    const share = el("span", "track", bar(className, 0, length / total));
    share.setAttribute("aria-hidden", "true");
    const percent = Math.round(length / total * 100) + " %", times = count > 1 ? " (" + count + " times)" : "";
    list.append(share, el("span", "value", duration(length)), el("span", "value", percent),
      el("span", "what", text + times));
  }
  return [el("h3", "", "Where the time went"), list];
}
// The ticks of a duration.
function scaleNode(length) {
  const step = niceStep(length / 4), scale = el("div", "track scale");
  for (let tick = 0; tick < length * 0.9; tick += step) {
    const label = el("span", "", tickLabel(tick, step));
    label.style.left = tick / length * 100 + "%";
    scale.append(label);
  }
  return scale;
}
// The attempts with their phases, the requests sent for the exchange, the decisions, and the time
// between them, on the time axis of the exchange.
function chart(row, parts) {
  const children = childrenOf(row).map(child => ({ ...child, kind: "request", start: child.start - row.start }));
  const ends = [...detail.attempts, ...detail.events, ...children].map(entry => entry.start + (entry.duration || 0));
  const end = Math.max(lengthOf(row), 0.001, ...ends);
  const gaps = parts.filter(({ isGap, from, to }) => isGap && to - from >= end * 0.02)
    .map(({ label, text, from, to }) => ({ kind: "gap", label, text, start: from, duration: to - from }));
  const entries = [
    ...detail.attempts.map(sent => ({ ...sent, kind: "attempt" })), ...detail.events, ...children, ...gaps,
  ].sort((a, b) => a.start - b.start);
  const element = el("div", "chart"), track = (kind, start, length) =>
    el("div", "track", bar(kind, start / end, (start + length) / end));
  if (entries.length) element.append(el("span"), scaleNode(end), el("span"));
  entries.forEach((entry, index) => {
    const hasEnded = entry.duration !== undefined;
    if (entry.kind === "attempt") { element.append(...attemptNodes(row, entry, track, end)); return; }
    if (entry.kind === "request") {
      const bars = track("attempt " + entry.class, entry.start, hasEnded ? entry.duration : end);
      element.append(rowLink(entry.number), bars,
        el("span", "value", hasEnded ? duration(entry.duration) : "…"));
      return;
    }
    if (entry.kind === "gap") {
      element.append(el("span", "label", entry.label), track("gap", entry.start, entry.duration),
        el("span", "value", duration(entry.duration)), el("span", "text", entry.text));
      return;
    }
    const next = entries.slice(index + 1).find(({ kind }) => kind === "attempt");
    const target = entry.kind === "redirect" && next ? "to " + next.url + " " : "";
    const text = entry.kind === "wait" ? textOf(entry)
      : readable(target + entry.detail.replace(/^to another origin/, "(another origin)"));
    const isFailure = entry.kind === "failure" && row.error, isNamed = isFailure && errorName(row.error) === text;
    element.append(el("span", "label" + (isFailure ? " error" : ""), entry.kind === "wait" ? "pause" : entry.kind));
    if (!hasEnded) {
      const node = el("span", "text" + (isFailure ? " error" : ""), !isNamed && text || "at " + duration(entry.start));
      if (entry.related) node.append(" ", rowLink(entry.related));
      element.append(node);
      return;
    }
    element.append(track(entry.kind === "wait" ? "pause" : "other", entry.start, entry.duration),
      el("span", "value", duration(entry.duration)));
    if (text) element.append(el("span", "text", text));
  });
  return entries.length ? element : el("p", "note", "No request was sent.");
}
function attemptNodes(row, sent, bars, end) {
  const isOpen = sent.duration === undefined, status = statusOf(sent);
  const className = attemptClass(row, { ...sent, status }, sent.number === detail.attempts.at(-1).number);
  const label = el("span", "label strong", "Attempt " + sent.number);
  if (status || sent.error) label.append(el("b", className, status || "ERR"));
  const whole = bars("attempt " + className, sent.start, isOpen ? end - sent.start : sent.duration);
  if (sent.phases.length) {
    // The phases are above a line in the color of the result.
    whole.firstChild.classList.add("under");
    const all = sent.phases.map(([name, start, length]) => bars(phaseClasses[name], sent.start + start, length));
    whole.append(...all.map(node => node.firstChild));
  }
  const nodes = [label, whole, el("span", "value", isOpen ? "…" : duration(sent.duration))];
  if (sent.error) nodes.push(el("span", "text error", sent.error));
  if (sent.phases.length) {
    const legend = sent.phases.map(([name, , time]) =>
      el("span", phaseClasses[name], name + " " + duration(time)));
    nodes.push(el("div", "text phases", ...legend));
  }
  return nodes;
}
