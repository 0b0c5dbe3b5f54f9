// Sends the last request of an exchange again, with changes. The page has no secrets: the program
// replaces the placeholders of unchanged values.
function sendNodes() {
  const sent = detail.attempts.at(-1), body = sent?.requestBody;
  if (!sent || selected < 0) return [el("p", "note", "Only requests that this program has sent can be sent again.")];
  const input = (name, element, value) => {
    element.id = "send-" + name.toLowerCase().replace(" ", "-");
    element.value = value;
    element.spellcheck = false;
    const label = el("label", "", name);
    label.htmlFor = element.id;
    return [label, element];
  };
  const method = el("input"), url = el("input"), headers = el("textarea"), text = el("textarea");
  headers.rows = 6;
  text.rows = 8;
  const original = body.text === undefined ? "" : body.text;
  const status = el("p", "note", "Placeholders in unchanged values are replaced by the secrets.");
  status.setAttribute("role", "status");
  const form = el("form", "send",
    ...input("Method", method, sent.method), ...input("URL", url, sent.url),
    ...input("Header fields", headers, sent.requestHeaders.map(([name, value]) => name + ": " + value).join("\n")),
    ...input("Body", text, original),
    ...(body.size && body.text === undefined ? [el("p", "note", "Without a text, the body is sent unchanged.")] : []));
  const submit = el("button", "primary", "Send");
  form.append(submit, status);
  form.addEventListener("submit", event => {
    event.preventDefault();
    const pairs = headers.value.split("\n").filter(line => line.trim()).map(line => {
      const colon = line.indexOf(":");
      return colon < 0 ? [line.trim()] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    });
    sendChanged(detail.summary.number, {
      method: method.value.trim(), url: url.value.trim(), headers: pairs,
      body: text.value === text.defaultText ? undefined : text.value,
    }, status, submit);
  });
  text.defaultText = text.value;  // line breaks are normalized by the element
  return [form];
}
let awaited = null;  // whether a row is that of the request that was sent last, which is selected
async function sendChanged(number, request, status, submit) {
  submit.disabled = true;
  const last = Math.max(...rows.keys());
  awaited = row => row.number > last && row.method === request.method && !row.parent;
  try {
    const response = await fetch("exchanges/" + number + "/send", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
    });
    const message = (await response.text()).trim();
    status.textContent = response.ok ? "Sent." : "Not sent: " + visible(message);
    if (!response.ok) awaited = null;
    status.className = response.ok ? "note" : "error";
  } catch {
    awaited = null;
    status.textContent = "Not sent: the program has ended.";
    status.className = "error";
  }
  submit.disabled = false;
}
