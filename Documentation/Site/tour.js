// The test of the site: opens its pages in a frame, and uses them as a reader does.
// `./scripts/docs --browse` opens it, and reads `failures` when the title is "Done".
"use strict";

const failures = [];
const frame = document.querySelector("iframe");
const root = new URL("../", location.href).href;
let passed = 0;

function check(what, condition) {
  if (condition) { passed += 1; return; }
  failures.push(what);
  report.textContent += what + "\n";
}
const page = () => frame.contentDocument;
const all = (selector) => [...page().querySelectorAll(selector)];
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits until a condition is true, for at most 10 seconds; returns its value. */
async function until(condition) {
  for (let round = 0; round < 500; round += 1) {
    try {
      const value = condition();
      if (value) return value;
    } catch { /* The page is being loaded. */ }
    await pause(20);
  }
  return null;
}

/** Opens a page, and waits for an element. */
async function open(path, selector = "main h1, .hero .title, h1.title") {
  frame.src = "about:blank";
  await until(() => page().URL === "about:blank");
  frame.src = root + path;
  const found = await until(() => frame.contentWindow.location.href.startsWith(root + path)
    && page().readyState === "complete" && page().querySelector(selector));
  check(`${path}: the page is not shown`, found);
  check(`${path}: no header`, await until(() => page().querySelector("custom-header .site-home")?.href === root));
}

/** Presses a key at an element. */
const press = (key, element) => element.dispatchEvent(
  new frame.contentWindow.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

/** Searches from the page in the frame with the keyboard, and opens the first result. */
async function search(query, expected) {
  press("/", page().body);
  const input = await until(() => page().querySelector(".site-search[open] input"));
  const start = performance.now();
  input.value = query;
  input.dispatchEvent(new frame.contentWindow.Event("input"));
  const first = await until(() => page().querySelector(".site-search li[aria-selected=true] a"));
  check(`${query}: the search takes ${performance.now() - start} ms`, performance.now() - start < 1000);
  check(`${query}: the first result is ${first?.href}`, expected.test(first?.href));
  const { href } = first;
  press("Enter", input);
  check(`${query}: Return does not open ${href}`, await until(() => frame.contentWindow.location.href === href
    && page().readyState === "complete" && page().querySelector("h1")));
}

async function tour() {
  await open("");
  const manual = await (await fetch(root + "manual/README/page.md")).text();
  check("the first program is not that of the README", manual.includes("```swift\n" + page().querySelector("pre").textContent + "```"));
  check("sections are missing", all(".needs section").length >= 12
    && all(".needs section").every((section) => section.querySelector("p") && section.querySelectorAll("a").length > 1));
  check("the picture is missing", await until(() => all("figure img").every((image) => image.naturalWidth > 0)));
  const links = new Set(all("main a[href]").map((link) => link.href));
  frame.style.width = "400px";
  const code = page().querySelector("pre"), style = frame.contentWindow.getComputedStyle(code);
  check("code that is cut has no hint", code.scrollWidth > code.clientWidth
    && style.backgroundAttachment.includes("local") && style.backgroundImage.includes("gradient"));
  frame.style.width = "";

  const anchors = {};
  for (const name of [...links].filter((link) => /manual\/[\w-]+\/$/.test(link)).map((link) => link.slice(root.length))) {
    await open(name, "body[data-shown] h1");
    anchors[root + name] = new Set(all("[id]").map((element) => element.id));
    all("article a[href]").forEach((link) => links.add(link.href));
    check(`${name}: a picture is missing`, await until(() => all("img").every((image) => image.naturalWidth > 0)));
    check(`${name}: text of Markdown is left`, !/\]\[|\]\(|\*\*|`/.test(
      all("article :is(p, li, td)").map((element) => {
        const copy = element.cloneNode(true);
        copy.querySelectorAll("code").forEach((code) => code.remove());
        return copy;
      }).map((element) => element.textContent).join("\n")));
  }
  for (const [query, expected] of Object.entries({
    download: /webservicetransfers\/downloadingfiles\/$/, cookies: /webservicecore\/redirectsandcookies\/$/, mocking: /webservicemocking\/$/,
    SQLite: /webservicesqlite/, SessionTask: /webservicecore\/sessiontask\/$/, "retry policy": /webservicecore\/retrypolicy\/$/,
  })) {
    await open("documentation/webservicecaching/");
    await search(query, expected);
  }

  await open("documentation/webservicecore/");
  page().querySelector("custom-header summary").click();
  check("the menu has no modules", await until(() => all(".site-modules a").length >= 17));
  page().querySelector("custom-header summary").click();
  const inner = await until(() => all("main a").find((link) => link.pathname.endsWith("/describingrequests")));
  inner?.click();
  check("a link of a page does not open another one", await until(() => frame.contentWindow.location.pathname.endsWith("describingrequests")));
  check("the header is not retained", await until(() => page().querySelector("custom-header .site-open")));
  await search("WebSocket", /webservicesockets|manual/);

  for (const [path, ...texts] of [
    ["documentation/webservicecore/", "Building API clients", "Typed requests", "WebServiceTransfers"],
    ["documentation/webservicecore/interceptingrequests/", "Intercepting requests"],
    ["documentation/webservicecore/sessiontask/", "Streams and events", "Downloading files", "Continuing uploads", "WebSocket"],
    ["documentation/webservicecore/webservice/", "Storing responses", "WebServiceOffline", "WebServiceTransfers"],
    ["documentation/webservicecore/sessiontask/cancel()/", "cancel()"],
    ["tutorials/webservicecore/buildingabreweryclient/", "Building a brewery client"],
  ]) {
    await open(path, "h1, .title");
    for (const text of texts) {
      check(`${path}: '${text}' is missing`, await until(() => page().body.innerText.includes(text)));
    }
  }

  const entries = await (await fetch(root + "site/search.json")).json();
  const isProse = (kind) => /^(Article|Module)$/.test(kind);
  for (const [, path] of [["", "manual/Guide/"], ["", "manual/Cookbook/"], ...entries.filter(([, , kind]) => isProse(kind))]) {
    await open(path, "h1");
    await until(() => page().querySelector("pre"));
    all("main a[href]").forEach((link) => links.add(link.href));
    const isWide = (box) => box.scrollWidth > box.clientWidth;
    for (const code of all("pre").filter((code) => isWide(code) || isWide(code.parentElement))) {
      check(`${path}: this code does not fit: ${code.textContent.slice(0, 60)}`, false);
    }
  }

  for (const link of [...links].filter((link) => link.startsWith(root))) {
    const [address, anchor] = link.split("#");
    const response = await fetch(address, { method: "HEAD" });
    check(`${link}: status ${response.status}`, response.ok);
    if (anchor && anchors[address]) check(`${link}: no such anchor`, anchors[address].has(anchor));
  }
}

tour().catch((error) => failures.push(String(error.stack))).then(() => {
  report.textContent += `${passed} checks passed, ${failures.length} failed.`;
  document.title = "Done";
});
