// The exchanges of an HTTP archive (HAR 1.2), each entry as one with a negative number.
const imported = new Map();  // the details, by number
const largestArchive = 50 << 20, mostEntries = 10000, longestBody = 4 << 20;
function tell(text) {
  $("message").textContent = visible(text);
  $("message").hidden = !text;
}
const asText = (value, longest = 100000) => typeof value === "string" ? value.slice(0, longest) : "";
const asNumber = value => typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
const asPairs = fields => (Array.isArray(fields) ? fields.slice(0, 1000) : [])
  .map(field => [asText(field?.name), asText(field?.value)]);
function importedBody(text, type, bytes, encoding) {
  const plain = (asText(type).split(";")[0] || "").trim().toLowerCase();
  const body = { size: bytes || 0, type: plain };
  if (typeof text !== "string" || !text) {
    if (body.size) body.note = "The archive does not contain the body.";
    return body;
  }
  body.size = body.size || text.length;
  if (text.length > longestBody) body.note = "The body is too large to be shown.";
  else if (encoding === "base64") {
    try { atob(text); } catch { return { ...body, note: "The body is damaged." }; }
    if (/^image\/(png|jpeg|gif|webp)$/.test(plain)) body.image = text; else body.bytes = text;
  } else {
    body.text = text;
    body.json = /^\s*[{[]/.test(text);
  }
  return body;
}
const timingNames = [
  ["dns", "name lookup"], ["connect", "connect"], ["ssl", "TLS"], ["wait", "waiting"], ["receive", "receiving"],
];
function importedPhases(timings) {
  const phases = [];
  let at = asNumber(timings?.blocked);
  for (const [key, name] of timingNames) {
    const ssl = asNumber(timings?.ssl);  // a part of the connect time
    const length = key === "connect" ? asNumber(timings?.connect) - ssl : asNumber(timings?.[key]);
    if (length > 0) { phases.push([name, at, length]); at += length; }
    if (key === "ssl") at += asNumber(timings?.send);
  }
  return phases;
}
// Returns the messages of a WebSocket in the form of Chromium; `undefined` for another entry.
function importedMessages(entry, start) {
  const all = entry._webSocketMessages;
  if (!Array.isArray(all)) return undefined;
  const rows = all.slice(-mostEvents).filter(message => message && typeof message.data === "string").map(message => {
    const isText = message.opcode !== 2, data = isText ? message.data : message.data.replace(/\s/g, "");
    const bytes = asNumber(message._size) || (isText ? data.length : Math.floor(data.length * 3 / 4));
    const body = isText ? importedBody(data, "text/plain", bytes) : importedBody(data, "", bytes, "base64");
    return { isReceived: message.type === "receive", isText, time: asNumber(message.time * 1000 - start), body };
  });
  return { dropped: all.length - rows.length + asNumber(entry._webSocketMessagesOmitted), rows };
}
// Returns the row and the details of an entry; throws an error for one that is damaged.
function importedEntry(entry, number) {
  const { request, response } = entry, start = Date.parse(entry.startedDateTime);
  if (!request || typeof request.url !== "string" || !Number.isFinite(start)) throw new Error("damaged");
  const status = asNumber(response?.status), content = response?.content;
  const source = asText(entry._fromCache, 20), isResult = typeof entry._exchangeDuration === "number";
  const error = asText(entry.comment) || asText(response?._error) || (status || isResult ? "" : "No response");
  const length = asNumber(entry.time), method = asText(request.method, 100), url = asText(request.url);
  const messages = importedMessages(entry, start);
  const received = messages?.rows.reduce((sum, { isReceived, body }) => sum + (isReceived ? body.size : 0), 0);
  const row = {
    number, name: method + " " + url, method, url, state: "ended", status: status || undefined,
    error: error || undefined, source: source || "archive", attempts: source ? 0 : 1,
    type: messages ? "websocket" : asText(content?.mimeType) || undefined,
    size: received ?? asNumber(content?.size), start, duration: length, spans: [["attempt", 0, length]],
  };
  const sent = {
    number: 1, start: 0, duration: length, method, url, error: row.error, protocol: asText(response?.httpVersion),
    requestHeaders: asPairs(request.headers), phases: importedPhases(entry.timings),
    requestBody: importedBody(
      request.postData?.text, request.postData?.mimeType, asNumber(request.bodySize)),
    response: status ? {
      status, headers: asPairs(response.headers),
      body: importedBody(content?.text, content?.mimeType, asNumber(content?.size), content?.encoding),
    } : undefined,
  };
  sent.address = asText(entry.serverIPAddress, 100);
  return {
    summary: row, attempts: source ? [] : [sent], response: source ? sent.response : undefined, events: [], messages,
    explanation: [], placeholder: "",
  };
}
function importArchive(text) {
  let entries;
  try {
    entries = JSON.parse(text).log.entries;
  } catch {
    entries = null;
  }
  if (!Array.isArray(entries)) { tell("The file is not an HTTP archive, or it is damaged."); return; }
  removeImported();
  let damaged = 0;
  const used = entries.slice(0, mostEntries);
  used.forEach((entry, index) => {
    try {
      const details = importedEntry(entry, index - used.length);
      imported.set(details.summary.number, details);
      add(details.summary);
    } catch {
      damaged += 1;
    }
  });
  const notes = [];
  if (damaged) notes.push(damaged + (damaged === 1 ? " entry is" : " entries are") + " damaged.");
  if (entries.length > mostEntries) notes.push("Only the first " + mostEntries + " entries are shown.");
  if (!entries.length) notes.push("The archive contains no entries.");
  tell(notes.join(" "));
  update();
}
async function importFile(file) {
  if (!file) return;
  if (file.size > largestArchive) {
    tell("The archive is larger than " + size(largestArchive) + " and is not imported.");
    return;
  }
  const text = await file.text().catch(() => null);
  if (text === null) tell("The file cannot be read."); else importArchive(text);
}
function removeImported() {
  for (const number of imported.keys()) rows.delete(number);
  imported.clear();
}
function findInImported(text) {
  const wanted = text.toLowerCase();
  const has = body => (body?.text || "").toLowerCase().includes(wanted);
  return [...imported].filter(([, { attempts: [sent], response, messages }]) => has(sent?.requestBody)
    || has((sent?.response ?? response)?.body) || messages?.rows.some(({ body }) => has(body)))
    .map(([number]) => number);
}
$("import").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  importFile($("file").files[0]);
  $("file").value = "";
});
$("message").addEventListener("click", () => tell(""));
document.addEventListener("dragover", event => event.preventDefault());
document.addEventListener("drop", event => {
  event.preventDefault();
  importFile(event.dataTransfer.files[0]);
});
