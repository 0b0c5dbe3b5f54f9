// The archive (HAR 1.2) that the page creates from what it has kept, after the end of the program.
const noBody = { size: 0 };
const archivedFields = pairs => (pairs || []).map(([name, value]) => ({ name, value }));
const archivedDate = ms => new Date(ms).toISOString();
function archivedContent(body = noBody) {
  const base64 = body.image || body.bytes, content = { size: body.size, mimeType: body.type || "" };
  if (base64) return { ...content, text: base64, encoding: "base64" };
  if (body.text !== undefined) content.text = body.text;
  if (body.note) content.comment = body.note;
  return content;
}
function archivedRequest(sent) {
  const body = sent.requestBody || noBody, headers = sent.sentHeaders || sent.requestHeaders;
  return {
    method: sent.method, url: sent.url, httpVersion: sent.protocol || "", cookies: [], headers: archivedFields(headers),
    queryString: archivedFields(pairsOf(/\?([^#]*)/.exec(sent.url)?.[1] ?? "")), headersSize: -1, bodySize: body.size,
    ...(body.text ? { postData: { mimeType: body.type || "", text: body.text } } : {}),
  };
}
function archivedResponse(sent, error) {
  const { status, headers, body } = sent.response || { status: 0, headers: [], body: noBody };
  const location = headers.find(([name]) => name.toLowerCase() === "location")?.[1] || "";
  return {
    status, statusText: "", httpVersion: sent.protocol || "", cookies: [], headers: archivedFields(headers),
    content: archivedContent(body), redirectURL: location, headersSize: -1, bodySize: body.size,
    ...(error ? { _error: error } : {}),
  };
}
function archivedTimings(sent) {
  const length = name => sent.phases.find(([other]) => other === name)?.[2] ?? -1, has = sent.phases.length > 0;
  const connect = Math.max(0, length("connect")) + Math.max(0, length("TLS"));
  return !has ? { send: 0, wait: sent.duration ?? 0, receive: 0 } : {
    blocked: length("queue"), dns: length("name lookup"), connect: connect || -1, ssl: length("TLS"), send: 0,
    wait: Math.max(0, length("waiting")), receive: Math.max(0, length("receiving")),
  };
}
const base64Of = text => btoa(Array.from(new TextEncoder().encode(text), byte => String.fromCharCode(byte)).join(""));
function archivedMessages({ dropped, rows: all }, start) {
  const messages = all.map(({ isReceived, isText, time, body }) => ({
    type: isReceived ? "receive" : "send", time: (start + time) / 1000, opcode: isText ? 1 : 2,
    data: body.bytes ?? (isText ? body.text ?? "" : base64Of(body.text ?? "")), _size: body.size,
  }));
  const omitted = dropped ? { _webSocketMessagesOmitted: dropped } : {};
  return { _resourceType: "websocket", _webSocketMessages: messages, ...omitted };
}
// The attempts, and what the caller received without a request, such as a response from a cache.
function archivedParts({ summary, attempts, response }) {
  const isUnsent = summary.url && summary.state === "ended" && (response || !attempts.length);
  return !isUnsent ? attempts : [...attempts, {
    method: summary.method, url: summary.url, start: 0, duration: summary.duration, phases: [], response,
  }];
}
// - isLast: Whether the entry has the result of the exchange.
function archivedEntry(details, sent, isLast) {
  const { summary, attempts, messages } = details, request = archivedRequest(sent);
  const error = sent.error || isLast && summary.error, isCancelled = sent.cancelled || isLast && summary.cancelled;
  const comment = error || (isCancelled ? "cancelled" : ""), isHit = !attempts.includes(sent) && isCached(summary);
  if (messages && isLast) request.url = request.url.replace(/^http/, "ws");
  return {
    startedDateTime: archivedDate(summary.start + sent.start), time: sent.duration ?? 0, request,
    response: archivedResponse(sent, comment), cache: {}, timings: archivedTimings(sent),
    ...(sent.address ? { serverIPAddress: sent.address } : {}), ...(comment ? { comment } : {}),
    ...(isHit ? { _fromCache: summary.source } : {}),
    ...(isLast && summary.duration !== undefined ? { _exchangeDuration: summary.duration } : {}),
    ...(messages && isLast ? archivedMessages(messages, summary.start) : {}),
  };
}
// Returns the archive as parts of a file, so that no string contains all bodies.
function archiveParts() {
  const parts = ['{"log":{"version":"1.2","creator":{"name":"WebService","version":"1"},"entries":[\n'];
  for (const number of [...kept.keys()].sort((a, b) => a - b)) {
    const details = JSON.parse(kept.get(number)), all = archivedParts(details);
    for (const sent of all) {
      if (parts.length > 1) parts.push(",\n");
      parts.push(JSON.stringify(archivedEntry(details, sent, sent === all.at(-1))));
    }
  }
  return [...parts, "\n]}}\n"];
}
// The link of the archive leads to the program. After its end, the page creates the archive.
function archiveKept(event) {
  if (!hasEnded) return;
  event.preventDefault();
  const missing = [...rows.keys()].filter(number => number > 0 && !kept.has(number)).length;
  if (!kept.size) { tell("There is no archive: the program has ended, and the page has received no details."); return; }
  save("inspector.har", archiveParts(), "application/json");
  if (!missing) return;
  tell("The archive lacks " + counted(missing, "exchange", "exchanges") + ", whose details the page has not kept.");
}
const archiveContent = " as an HTTP archive (HAR 1.2): an entry for each attempt, and for each exchange without a "
  + "request, such as a cache hit; the last entry has the error and the duration of the exchange";
// Adapts the link of the archive to the end of the program.
function showArchive() {
  const isEmpty = hasEnded && !kept.size;
  $("archive").setAttribute("aria-disabled", String(isEmpty));
  $("archive").title = isEmpty ? "The program has ended, and the page has received no exchange to archive"
    : hasEnded ? "Save the exchanges that the page has received" + archiveContent : "Download all exchanges" + archiveContent;
}
$("archive").addEventListener("click", archiveKept);
