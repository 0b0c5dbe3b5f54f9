// The last or selected request as code: a cURL command, which the program creates, and Swift.
const hiddenInSwift = new RegExp(hidden.source + "|[\"\\\\\t\n]", "g");
const swiftEscapes = { "\"": "\\\"", "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const swiftLiteral = text => "\"" + String(text).replace(hiddenInSwift, c => swiftEscapes[c] ?? visible(c)) + "\"";
const swiftMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS"];
function swiftCode(sent) {
  const body = sent.requestBody, isType = ([name]) => name.toLowerCase() === "content-type";
  const text = body?.text ?? (body?.size ? "[body of " + body.size + " bytes]" : "");
  const type = text && sent.requestHeaders.find(isType)?.[1];
  const headers = sent.requestHeaders.filter(pair => !type || !isType(pair));
  const method = swiftMethods.includes(sent.method) ? "." + sent.method : swiftLiteral(sent.method);
  const isChanged = headers.length > 0 || text !== "";
  return [
    "import Foundation", "import WebServiceCore", "",
    "let service = WebService(baseURLString: " + swiftLiteral(/^[a-z]+:\/\/[^/?#]*/i.exec(sent.url)?.[0] ?? sent.url) + ")",
    (isChanged ? "var" : "let") + " request = Request(" + method + ", url: " + swiftLiteral(sent.url) + ")",
    ...(headers.length ? ["request.headers = [",
      ...headers.map(([name, value]) => "    " + swiftLiteral(name) + ": " + swiftLiteral(value) + ","), "]"] : []),
    ...(text ? ["request.content = .data(",
      "    Data(" + swiftLiteral(text) + ".utf8), contentType: " + (type ? swiftLiteral(type) : "nil") + ")"] : []),
    "let data = try await service.sessionTask(request: request).data().value",
    "print(String(decoding: data, as: UTF8.self))", "",
  ].join("\n");
}
function codeNodes() {
  const sent = current();
  if (!sent) return [el("p", "note", "No request was sent.")];
  const section = (name, id, text) => {
    const pre = el("pre");
    pre.append(withMarks(text, detail.placeholder));
    pre.id = id;
    return [el("h3", "", name), el("div", "bodytools", button("Copy", "", () => copyText(text))), pre];
  };
  return [
    ...attemptButtons(), ...(sent.curl ? section("cURL", "curl", sent.curl) : []),
    ...section("Swift", "swift", swiftCode(sent)),
    ...(detail.placeholder ? [el("p", "note", "Secrets are replaced by " + detail.placeholder + ".")] : []),
  ];
}
async function copyCode(name) {
  const sent = detail && current();
  if (!sent) return;
  const text = name === "swift" ? swiftCode(sent) : sent.curl;
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    choose("code");
    getSelection().selectAllChildren($(name));
    toast("Press Ctrl-C to copy");
  }
}
$("copy").addEventListener("click", () => copyCode("curl"));
$("copyswift").addEventListener("click", () => copyCode("swift"));
