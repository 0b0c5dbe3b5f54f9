// The views of bodies: text, JSON, XML, images, bytes, the events of an event stream, and the messages
// of a WebSocket.
const hexStep = 64 << 10, mostEvents = 1000, mostSteps = { text: 8, markup: 256 };
let isRaw = false;  // whether bodies are shown as they were received
const bytesOf = base64 => Uint8Array.from(atob(base64), c => c.charCodeAt(0));
function hexLine(bytes, start, width) {
  const part = bytes.subarray(start, start + width);
  const hex = Array.from(part, byte => byte.toString(16).padStart(2, "0")).join(" ");
  const text = Array.from(part, byte => byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".").join("");
  return start.toString(16).padStart(8, "0") + "  " + hex.padEnd(width * 3 - 1) + "  " + text + "\n";
}
// Returns the first bytes, and a button that shows further ones.
function hexNodes(bytes) {
  const width = $("panel").clientWidth < 620 ? 8 : 16, pre = el("pre", "hex");
  let end = 0;
  const more = button("", "more", () => show());
  function show() {
    const from = end, lines = [];
    end = Math.min(bytes.length, end + hexStep);
    for (let start = from; start < end; start += width) lines.push(hexLine(bytes, start, width));
    pre.append(document.createTextNode(lines.join("")));
    more.textContent = "Show more (" + size(bytes.length - end) + ")";
    more.hidden = end === bytes.length;
  }
  show();
  return [pre, more];
}
function pictureNodes(bytes, body) {
  const picture = el("img", "picture");
  picture.alt = "Body of the type " + body.type;
  picture.src = URL.createObjectURL(new Blob([bytes], { type: body.type }));
  picture.onload = () => {
    URL.revokeObjectURL(picture.src);
    note.textContent += ", " + picture.naturalWidth + " × " + picture.naturalHeight + " pixels";
  };
  picture.onerror = () => { note.textContent += "; the image is damaged"; };
  const note = el("p", "note", body.type + ", " + size(body.size));
  const hex = el("details", "", el("summary", "", "Bytes"));
  hex.addEventListener("toggle", () => { if (!hex.querySelector("pre")) hex.append(...hexNodes(bytes)); });
  return [picture, note, hex];
}
// Returns the complete events of an event stream (WHATWG HTML, section 9.2), and whether a part of
// a further one follows.
function parseEvents(text) {
  const events = [];
  let id = "", type = "", data = [], hasFields = false, emptyLines = 0;
  for (const line of text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/)) {
    if (!line) {
      emptyLines += 1;
      if (data.length) events.push({ id, type: type || "message", data: data.join("\n"), emptyLines });
      [type, data, hasFields] = ["", [], false];
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    hasFields = true;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    if (name === "event") type = value;
    if (name === "id" && !value.includes("\0")) id = value;
  }
  return [events, hasFields];
}
const openEvents = new Set();  // of the exchange that is shown
let openEventsOf = null;
// Returns a row whose content is created when it is opened, and that remains open in updates.
function eventRow(index, labels, preview, content) {
  if (openEventsOf !== selected) { openEvents.clear(); openEventsOf = selected; }
  const row = el("details", "event", el("summary", "", ...labels, preview));
  const fill = () => { if (row.children.length === 1) row.append(...content()); };
  row.addEventListener("toggle", () => {
    if (row.open) { openEvents.add(index); fill(); } else openEvents.delete(index);
  });
  if (openEvents.has(index)) { row.open = true; fill(); }
  return row;
}
function previewOf(text, placeholder) {
  const preview = el("span", "preview");
  preview.append(withMarks(text.slice(0, 300), placeholder));
  return preview;
}
function eventNodes(body, placeholder) {
  const [events, isPartial] = parseEvents(body.text);
  const list = el("div", "events"), first = Math.max(0, events.length - mostEvents);
  if (first) list.append(el("p", "note", "The last " + mostEvents + " of " + events.length + " events."));
  events.slice(first).forEach((event, offset) => {
    const index = first + offset, time = body.arrivals?.find(([lines]) => lines >= event.emptyLines)?.[1];
    const labels = [
      el("b", "", String(index + 1)), time === undefined ? null : el("span", "time", duration(time)),
      el("i", "", event.type),
    ];
    list.append(eventRow(index, labels, previewOf(event.data, placeholder), () => {
      const nodes = textNodes({ text: event.data, json: /^\s*[{[]/.test(event.data) }, placeholder);
      return [...(event.id ? [el("p", "note", "id: " + event.id)] : []), ...nodes];
    }));
  });
  if (!events.length) list.append(el("p", "note", "No complete event yet."));
  if (isPartial) list.append(el("p", "note", "A further event is incomplete."));
  return [list];
}
const previewBytes = 48;
function messagePreview(body, placeholder) {
  if (!body.bytes) return previewOf(body.text ?? body.note ?? "", placeholder);
  const bytes = bytesOf(body.bytes.slice(0, previewBytes / 3 * 4));
  return el("span", "preview", Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join(" "));
}
// Returns the rows of the messages of a WebSocket, and its end.
function messageNodes(messages, placeholder) {
  const nodes = [], list = el("div", "events");
  if (messages.dropped) {
    const were = messages.dropped === 1 ? " older message was" : " older messages were";
    nodes.push(el("p", "note", messages.dropped + were + " dropped to limit the memory."));
  }
  messages.rows.forEach(({ isReceived, isText, time, body }, offset) => {
    const direction = el("b", isReceived ? "received" : "sent", isReceived ? "↓" : "↑");
    direction.setAttribute("role", "img");
    direction.setAttribute("aria-label", isReceived ? "received" : "sent");
    const labels = [
      direction, el("span", "time", duration(time)), el("i", "", isText ? "text" : "binary"),
      el("span", "size", size(body.size)),
    ];
    const index = messages.dropped + offset, name = "message-" + (index + 1);
    list.append(eventRow(index, labels, messagePreview(body, placeholder), () => bodyNodes(body, placeholder, name)));
  });
  nodes.push(messages.rows.length ? list : el("p", "note", "No message yet."));
  if (messages.closure) {
    const { code, reason } = messages.closure, end = el("p", "note", "Closed with the code " + code);
    if (reason) end.append(": ", withMarks(reason, placeholder));
    nodes.push(end);
  }
  return nodes;
}
function fileName(url, body) {
  const last = /([^/?#]*)\/?(?:[?#].*)?$/s.exec(url.replace(/^[a-z]+:\/\/[^/]*/i, ""))[1];
  const plain = last.replace(/[^\w.-]/g, "_").slice(-80).replace(/^\.+/, "") || "body";
  const known = { "application/json": "json", "text/plain": "txt", "application/octet-stream": "bin" };
  const type = (body.type || "").toLowerCase();
  const ending = known[type] || (body.json ? "json" : /[a-z0-9]+$/.exec(type)?.[0] || "bin");
  return plain.includes(".") ? plain : plain + "." + ending;
}
function save(name, parts, type) {
  const link = el("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser does not permit copying.");
  }
}
// Returns the parts of a multipart body, or `null` if it is damaged.
function parseMultipart(text) {
  const boundary = /^(?:\r?\n)*(--[^\r\n]+)\r?\n/.exec(text)?.[1];
  if (!boundary) return null;
  return ("\n" + text).split("\n" + boundary).slice(1).filter(part => !part.startsWith("--")).map(part => {
    const [, head, content] = /^\r?\n?((?:[^\r\n]+\r?\n)*)\r?\n?([\s\S]*?)\r?$/.exec(part);
    const headers = head.trim().split(/\r?\n/).map(line => line.split(/:\s*([\s\S]*)/, 2));
    const value = name => headers.find(([other]) => other.toLowerCase() === name)?.[1] || "";
    const parameter = name => new RegExp("[; ]" + name + "=\"?([^\";]*)").exec(value("content-disposition"))?.[1];
    const type = value("content-type").replace(/;.*/s, "");
    return { name: parameter("name") || "", file: parameter("filename"), type, headers, content };
  });
}
function partNodes(parts, placeholder) {
  return [el("div", "events", ...parts.map((part, index) => {
    const labels = [el("b", "", part.name), part.file ? el("i", "", part.file) : null,
      el("span", "size", size(new Blob([part.content]).size))];
    const body = { text: part.content, type: part.type, size: part.content.length, json: /^\s*[{[]/.test(part.content) };
    return eventRow(index, labels, previewOf(part.content, placeholder), () => [
      fields(part.headers, true, placeholder), ...bodyNodes(body, placeholder, part.file || part.name || "part")]);
  }))];
}
// The decoded pairs of a query or form.
const pairsOf = text => [...new URLSearchParams(text)];
// Returns the nodes that show text in its format.
function textNodes(body, placeholder) {
  const pre = el("pre", body.json && !isRaw ? "json" : ""), isMarkup = !isRaw && (body.json || isXML(body));
  const steps = isRaw || !isMarkup ? formatText(body.text, pre, placeholder)
    : body.json ? formatJSON(body.text, pre, placeholder, body.wrong) : formatXML(body.text, pre);
  return [pre, ...inPieces(pre, steps, isMarkup ? mostSteps.markup : mostSteps.text)];
}
// Returns the nodes of a body with a view of its own; `null` for other text.
function previewNodes(body, placeholder) {
  if (body.text === undefined) return null;
  if (body.type === "text/event-stream") return eventNodes(body, placeholder);
  if (body.type === "application/x-www-form-urlencoded") return [fields(pairsOf(body.text), true, placeholder)];
  const parts = body.type?.startsWith("multipart/") ? parseMultipart(body.text) : null;
  return parts && partNodes(parts, placeholder);
}
function bodyTools(body, bytes, url) {
  const base64 = body.image || body.bytes;
  const tools = el("div", "bodytools",
    button("Save", "", () => save(fileName(url, body), [bytes || body.text], "application/octet-stream")),
    button(base64 ? "Copy as Base64" : "Copy", "", () => copyText(base64 || body.text)));
  if (body.text !== undefined) {
    const raw = button("Raw", "", () => { isRaw = !isRaw; show(); });
    raw.setAttribute("aria-pressed", String(isRaw));
    tools.append(raw);
  }
  if (body.json && !isRaw) {
    let folds = false;
    tools.append(button("Fold all", "", event => {
      folds = !folds;
      event.target.textContent = folds ? "Unfold all" : "Fold all";
      foldAll(tools.nextElementSibling, folds);
    }));
  }
  return tools;
}
// Returns the nodes that show a body.
function bodyNodes(body, placeholder, url) {
  if (!body || !body.size && !body.note) return [el("p", "note", "No body.")];
  const nodes = [], bytes = body.image || body.bytes ? bytesOf(body.image || body.bytes) : null;
  if (bytes || body.text) nodes.push(bodyTools(body, bytes, url));
  if (body.image) {
    nodes.push(...pictureNodes(bytes, body));
  } else if (bytes) {
    nodes.push(...hexNodes(bytes), el("p", "note", "These bytes are not redacted."));
  } else if (body.text !== undefined) {
    nodes.push(...(!isRaw && previewNodes(body, placeholder) || textNodes(body, placeholder)));
  }
  if (body.note) nodes.push(el("p", "note", body.note));
  return nodes;
}
