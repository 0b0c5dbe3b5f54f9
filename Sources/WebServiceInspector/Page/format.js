// Elements and numbers. Text is only inserted as text nodes.
const $ = id => document.getElementById(id);
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
// Control characters and those that change the direction of text are shown as escape
// sequences.
function visible(text) {
  return String(text).replace(hidden, c => "\\u{" + c.charCodeAt(0).toString(16).toUpperCase() + "}");
}
function el(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  for (const child of children) {
    if (child !== null && child !== undefined) {
      element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
    }
  }
  return element;
}
function size(bytes) {
  if (bytes === undefined || bytes === null) return "";
  if (bytes < 1000) return bytes + " B";
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1000, unit = 0;
  while (value >= 999.5 && unit < 3) { value /= 1000; unit += 1; }
  return (value < 9.95 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}
function duration(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms === 0) return "0 s";
  if (ms < 0.9995) return Math.round(ms * 1000) + " µs";
  if (ms < 9.95) return ms.toFixed(1) + " ms";
  if (ms < 999.5) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(ms < 9950 ? 2 : 1) + " s";
  return Math.floor(ms / 60000) + ":" + String(Math.floor(ms / 1000) % 60).padStart(2, "0") + " min";
}
// Returns a time with the digits that distinguish it from the tick before, which is a step earlier.
function tickLabel(ms, step) {
  const digits = unit => Math.min(Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)), 9);
  if (!ms) return "0";
  if (ms < 0.9995) return (ms * 1000).toFixed(digits(0.001)) + " µs";
  if (ms < 999.5) return ms.toFixed(digits(1)) + " ms";
  if (ms < 60000 - step / 2) return (ms / 1000).toFixed(digits(1000)) + " s";
  const minutes = Math.floor(ms / 60000 + 1e-9), count = digits(1000);
  const seconds = Math.max(0, ms / 1000 - minutes * 60).toFixed(count).padStart(count ? count + 3 : 2, "0");
  return minutes + ":" + seconds + " min";
}
// The date and the time of the browser's zone.
function localTime(ms) {
  const minutes = -new Date(ms).getTimezoneOffset(), pad = number => String(number).padStart(2, "0");
  const zone = minutes ? (minutes < 0 ? "−" : "+") + pad(Math.floor(Math.abs(minutes) / 60)) + ":"
    + pad(Math.abs(minutes) % 60) : "";
  return new Date(ms + minutes * 60000).toISOString().slice(0, 23).replace("T", " ") + " UTC" + zone;
}
// Shortens durations in sentences, such as "0.338326 seconds".
const readable = text => text.replace(/\b(\d+\.\d+) seconds\b/g, (_, seconds) => duration(seconds * 1000));
function shortType(type) {
  const plain = (type || "").replace(/;.*/s, "").trim().toLowerCase();
  const name = plain.replace(/^(application|text|image|audio|video)\//, "");
  return name === "x-www-form-urlencoded" ? "form" : name;
}
// Marks the placeholders of secrets. Line breaks of the network are those of the page.
function withMarks(text, placeholder) {
  const fragment = document.createDocumentFragment(), plain = visible(String(text).replaceAll("\r\n", "\n"));
  const parts = placeholder ? plain.split(placeholder) : [plain];
  parts.forEach((part, index) => {
    if (index) fragment.append(el("span", "redacted", placeholder));
    if (part) fragment.append(document.createTextNode(part));
  });
  return fragment;
}
// Permits a line to end after the separators of a URL.
function withBreaks(fragment) {
  for (const node of [...fragment.childNodes]) {
    if (node.nodeType !== Node.TEXT_NODE) continue;
    const parts = node.data.split(/(?<=[/?&=._-])(?![/?&=._-])/);
    node.replaceWith(...parts.flatMap((part, index) => index ? [el("wbr"), part] : [part]));
  }
  return fragment;
}
function fields(pairs, mono, placeholder) {
  const list = el("dl", mono ? "fields mono" : "fields");
  for (const [name, value] of pairs) {
    const description = el("dd");
    description.append(value instanceof Node ? value : withMarks(value, placeholder));
    list.append(el("dt", "", name), description);
  }
  return list;
}
let toastTimer = 0;
function toast(text) {
  $("toast").textContent = text;
  $("toast").classList.add("on");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => $("toast").classList.remove("on"), 1800);
}
function button(text, className, action) {
  const element = el("button", className, text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}
