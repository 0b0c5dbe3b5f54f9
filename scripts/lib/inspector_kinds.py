"""Tests the inspector's page with an exchange of each kind: panels, filters, outcomes, and the end of the program."""
import json
import os
import signal
import subprocess
import time

import inspector_views as views

# Opens a tab of all rows, so that each row follows each other one, and compares each panel with the one that
# the row shows alone.
TOUR = """(async part => {
    const wait = condition => new Promise(resolve => {
        const look = () => condition() ? resolve() : setTimeout(look, 1);
        look();
    });
    const numbers = shown.map(row => row.number), alone = new Map(), problems = [];
    const text = () => $("title").textContent + "|" + $("panel").textContent.slice(0, 400);
    const open = async number => {
        select(number, true);
        if ($("panel").dataset.row !== String(number)) problems.push(number + " does not replace the panel");
        await wait(() => detail && detail.summary.number === number);
        const row = rows.get(number), panel = $("panel");
        if (panel.dataset.row !== String(number) || panel.dataset.shown !== number + part) problems.push(number + " has no panel");
        if (!$("title").textContent.includes(visible(row.url || row.name))) problems.push(number + " is not named");
        if (panel.textContent.trim() === "") problems.push(number + " is empty");
    };
    choose(part);
    for (const number of numbers) {
        [selected, detail] = [null, null];
        clearPanel("");
        await open(number);
        alone.set(number, text());
    }
    const compare = async number => {
        await open(number);
        if (rows.get(number).state === "ended" && text() !== alone.get(number)) {
            problems.push(number + ": " + text() + " instead of " + alone.get(number));
        }
    };
    let steps = 0;
    for (let first = 0; first < numbers.length; first += 1) {
        for (let second = first + 1; second < numbers.length; second += 1) {
            await compare(numbers[first]);
            await compare(numbers[second]);
            steps += 2;
        }
    }
    await compare(numbers[0]);
    return [numbers.length, steps, problems.slice(0, 5)];
})"""


def test_kinds(check, page, probe):
    for command in ("kinds", "cached", "failures", "hold"):
        probe.run(command)
    page.run("tell(''); hide(0); $('filter').value = 'kind'; state = 'all'; update()")
    page.wait("shown.length > 28 && shown.every(row => row.state === 'ended')")
    page.run("$('filter').value = ''; update()")
    # The rows of other tests are left out.
    page.run("hide(Math.min(...[...rows.values()].filter(row => row.path.includes('/kind/')).map(row => row.number)) - 1)")
    page.run("update()")
    for part in ("overview", "request", "response", "code", "send"):
        start = time.monotonic()
        count, steps, problems = page.run(f"{TOUR}('{part}')")
        print(f"{part} of {count} exchanges in all orders of two: {steps} panels in {time.monotonic() - start:.1f} s", flush=True)
        check(f"there are exchanges of 30 kinds for {part}", count >= 30, count)
        check(f"{part} belongs to its row, also after each other row", problems == [], problems)
    check("no exception of the page is shown", page.run("$('message').hidden"), page.run("$('message').textContent"))
    probe.run("release")
    page.run("choose('overview'); close()")


def found(page, text):
    page.run(f"$('filter').value = {json.dumps(text)}; $('filter').dispatchEvent(new Event('input'))")
    return page.run("shown.map(row => row.path.replace('/v1/kind/', ''))")


def chip(page, name):
    page.run(f"document.querySelector('[data-state={json.dumps(name)}]').click()")
    rows = page.run("shown.map(row => row.path.replace('/v1/kind/', ''))")
    count = page.run(f"document.querySelector('[data-state={json.dumps(name)}] b').textContent")
    page.run("document.querySelector('[data-state=all]').click()")
    return rows, int(count or 0)


def test_filters(check, page):
    for name, wanted, unwanted in (
            ("1", ["socket"], []), ("3", ["loop"], ["refused"]), ("4", ["refused", "refreshed"], ["server"]),
            ("5", ["server"], ["refused"]), ("2", ["large", "refreshed", "events"], ["refused", "cancelled", "timeout"]),
            ("failed", ["refused", "timeout", "socket", "loop"], ["cancelled", "events", "read"]),
            ("cancelled", ["cancelled"], ["events", "read", "timeout"]), ("secrets", ["refreshed"], ["large"])):
        rows, count = chip(page, name)
        check(f"the chip {name} shows its exchanges", set(wanted) <= set(rows) and not set(unwanted) & set(rows), rows)
        check(f"the chip {name} counts its exchanges", count == len(rows), [count, len(rows)])
    chips = page.run("shown.filter(row => !states.slice(1).some(([, , isIn]) => isIn(row))).map(row => row.path + row.state)")
    check("each exchange has a chip or no response", all("typed" in path or "download" in path for path in chips), chips)
    everything = set(found(page, ""))
    for text, wanted in (
            ("401", {"refreshed"}), ("status-code:401", {"refreshed"}), ("status-code:5xx kind", {"server"}),
            ("method:put", {"upload"}), ("mime-type:image/png kind", {"image"}), ("larger-than:200k", {"large", "lines", "download"}),
            ("is:from-cache kind", set()), ("domain:*.example.com method:put", {"upload"}), ("is:failed status-code:404 kind", {"refused"}),
            ("url:*kind/upload", {"upload"}), ("slower-than:1h", set()), ("method: refused", {"refused"}),
            ("\"kind/query?name\"", {path for path in everything if path.startswith("query")})):
        rows = set(found(page, text))
        check(f"the filter {text} finds its exchanges", rows == wanted, rows)
    times = page.run("['250ms', '1.5s', '2', '2m', '1h'].map(milliseconds)")
    check("durations have units", times == [250, 1500, 2000, 120000, 3600000], times)
    check("a term is excluded", set(found(page, "-kind/")) == {path for path in everything if "/" in path},
          found(page, "-kind/"))
    check("a key is excluded", "upload" not in found(page, "-method:put") and "large" in found(page, "-method:put"))
    found(page, "")
    page.run("$('filter').focus()")
    check("the filter suggests its keys", page.run("[...$('suggestions').options].some(o => o.value === 'status-code:404')"))


def test_outcomes(check, page):
    open_row = views.open_row
    row = page.run(views.last("/v1/kind/events"))
    check("a stream that was read up to its last event is complete", "cancelled" not in row and "error" not in row, row)
    text = open_row(page, "/v1/kind/events")
    rows = page.run("[...$('panel').querySelectorAll('.event summary')].map(row => [...row.children].map(c => c.textContent))")
    check("events have their times", len(rows) == 3 and rows[0][1].endswith("s") and rows[1][2] == "message", rows)
    row = page.run(views.last("/v1/kind/socket"))
    check("a connection that the server closed with 1011 has failed, with the reason", row["error"]
          == "webSocketClosed: the server closed the connection with code 1011: the brewery has burned down", row)
    row = page.run(views.last("/v1/kind/refused"))
    check("a refused status has its class", row["class"] == "client" and "unacceptableStatus" in row["error"], row)
    text = open_row(page, "/v1/kind/refused")
    check("the response of a failed step has its error and its body", "unacceptableStatus" in text and "no such brewer" in text, text)
    path = "/v1/kind/loop"
    page.run(f"select({views.last(path)}.number, true); choose('overview')")
    page.wait("detail && detail.summary.number === selected")
    text = page.run("$('panel').innerText")
    check("a redirect has its target", "to https://brewhapi.example.com/v1/kind/loop" in text, text)
    number = page.run("[...rows.values()].find(row => row.composite && row.url?.endsWith('/download')).number")
    page.run(f"select({number}, true)")
    page.wait("detail && detail.summary.number === selected")
    text = page.run("$('panel').innerText")
    check("a download shows its requests", "GET https://brewhapi.example.com/v1/kind/download" in text and "was sent yet" not in text, text)
    labels = page.run(f"(() => {{ $('list').scrollTop = 1e9; render(); return $('list').innerText; }})()")
    check("a download and its request differ in the list", "download" in labels and "↳ /v1/kind/download" in labels, labels)
    page.run("$('panel').querySelector('.chart .link').click()")
    page.wait("detail && detail.summary.parent")
    check("a request of a download is opened from it", page.run("detail.summary.parent") == number)
    text = page.run("$('panel').innerText")
    check("the start is in local time", page.run("localTime(detail.summary.start)") in text and " UTC" in text, text)
    page.run("close()")


def test_bodies(check, page):
    open_row = views.open_row
    open_row(page, "/v1/kind/large")
    page.wait("!$('panel').textContent.includes('Formatting')")
    check("large JSON is colored", page.run("$('panel').querySelectorAll('pre .key').length") == 16_000)
    check("large JSON is complete", page.run(
        "JSON.stringify(JSON.parse($('panel').querySelector('pre').textContent)) === "
        "JSON.stringify(JSON.parse(detail.attempts[0].response.body.text))"))
    views.press(page, "Fold all")
    check("all of large JSON folds", page.run("$('panel').querySelectorAll('.folded').length") == 8_000)
    views.press(page, "Raw")
    check("the raw body is unchanged", page.run(
        "$('panel').querySelector('pre').textContent === detail.attempts[0].response.body.text"))
    views.press(page, "Raw")
    longest = page.measure("""new Promise(resolve => {
        let last = performance.now(), longest = 0;
        const frame = () => {
            const now = performance.now();
            [longest, last] = [Math.max(longest, now - last), now];
            if ($("panel").textContent.includes("Formatting")) requestAnimationFrame(frame); else resolve(longest);
        };
        show();
        requestAnimationFrame(frame);
    })""", lambda longest: longest < 500)
    print(f"longest frame while 390 kB of JSON are formatted: {longest:.0f} ms", flush=True)
    check("the page responds while large JSON is formatted", longest < 500, longest)
    open_row(page, "/v1/kind/lines")
    text = page.run("$('panel').querySelector('pre').textContent")  # innerText omits what is not rendered yet
    check("line breaks of the network are line breaks", "Long Trail\nLong Trail" in text and "\\u{D}" not in text, text[:200])
    views.press(page, "Show more")
    page.wait("$('panel').querySelector('pre').textContent.length > 900000")
    query = next(path for path in page.run("[...rows.values()].map(row => row.path)") if "/kind/query" in path)
    text = open_row(page, query, "request")
    check("query parameters are a table", "name\nLong Trail\n" in text and "🍺\n\\u{202E}" in text and "canary" not in text, text)
    text = open_row(page, "/v1/kind/form", "request")
    check("a form is a table", "name\nLong Trail" in text and "password\n[redacted]" in text, text)
    text = open_row(page, "/v1/kind/multipart", "request")
    parts = page.run("[...$('panel').querySelectorAll('.event summary')].map(row => row.textContent)")
    check("multipart parts are rows", parts[0].startswith("name") and "beers.csv" in parts[1] and "8 B" in parts[1], parts)
    text = open_row(page, "/v1/kind/script")
    check("a script is text", "<script>window.attacked = 1</script>" in text and page.run("window.attacked") is None, text)
    text = open_row(page, "/v1/kind/names")
    check("characters that change the direction are visible", "a\\u{202E}b" in text, text)
    page.run("close()")


def test_swift(check, page, modules, folder):
    """Compiles the Swift code of requests."""
    if not os.path.isdir(modules):
        print("There are no modules beside the probe, so Swift code is not compiled.", flush=True)
        return
    for path in ("/v1/kind/form", "/v1/kind/upload", "/v1/kind/names", "/v1/specials?limit=3"):
        views.open_row(page, path, "code")
        code = page.run("$('swift').textContent")
        check(f"the Swift code of {path} is redacted", "canary" not in code and "https://brewhapi" in code, code)
        file = os.path.join(folder, "main.swift")
        with open(file, "w", encoding="utf-8") as output:
            output.write(code)
        result = subprocess.run(["swiftc", "-typecheck", "-swift-version", "6", "-I", modules, file], capture_output=True, text=True)
        check(f"the Swift code of {path} compiles", result.returncode == 0, result.stderr[-2000:] + code)
    page.run("choose('overview'); close()")


def test_panes(check, page):
    page.run("select(shown[0].number, true)")
    before = page.run("$('detail').clientWidth")
    page.run("$('divider').focus()")
    for _ in range(3):
        page.press("ArrowLeft")
    page.wait(f"$('detail').clientWidth > {before} + 40")
    x = page.run("$('divider').getBoundingClientRect().x + 2")
    for kind, at in (("mousePressed", x), ("mouseMoved", x + 200), ("mouseReleased", x + 200)):
        page.call("Input.dispatchMouseEvent", type=kind, x=at, y=500, button="left", buttons=1, clickCount=1)
    check("the divider can be dragged", page.run("$('detail').clientWidth") < before, before)
    page.run("setWidth(46); close()")


def test_axis(check, page):
    start = 1_000_000
    rows = [{"start": start + index * 50, "duration": 40} for index in range(20)]
    rows += [{"start": start + 3_600_000 + index * 50, "duration": 40} for index in range(20)]  # after an hour
    rows.append({"start": start + 10})  # open
    page.run(f"window.keptRows = [...rows]; rows.clear(); {json.dumps(rows)}.forEach((row, index) => add({{ number: index + 1,"
             " name: 'x', method: 'GET', url: 'https://h/x', state: row.duration ? 'ended' : 'active', status: 200, attempts: 1,"
             " spans: [['attempt', 0, row.duration ?? null]], ...row })); hide(0); setZoom(null); update(); list.scrollTop = 0; render()")
    widths = page.run("[...list.querySelectorAll('.row:not([hidden]) .fall div')].map(bar => bar.getBoundingClientRect().width)")
    check("neither a pause nor an open request flattens the bars", len(widths) > 10 and sorted(widths)[1] > 3, widths)
    labels = page.run("[...$('scale').children].map(label => label.textContent)")
    check("the waterfall has a scale", labels[0] == "0" and len(labels) >= 2, labels)
    box = page.run("(() => { const b = $('strip').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")
    x, y, width, height = box
    drag = [("mousePressed", x + width * .1), ("mouseMoved", x + width * .2), ("mouseMoved", x + width * .3), ("mouseReleased", x + width * .3)]
    for kind, at in drag:
        page.call("Input.dispatchMouseEvent", type=kind, x=at, y=y + height / 2, button="left", buttons=1, clickCount=1)
    found = page.run("zoomShares()")
    check("dragging over the overview zooms", abs(found[0] - .1) < .02 and abs(found[1] - .3) < .02, found)
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x + width * .9, y=y + height / 2, button="left", buttons=1, clickCount=1)
    check("a click on the overview shows all", page.run("zoom === null"))
    page.run("rows.clear(); for (const [number, row] of window.keptRows) rows.set(number, row); update()")


def test_end(check, browser, start):
    """The details remain when the program exits directly after its last exchange, and when it is killed."""
    for command in ("exit", "kill", "stop"):
        probe = start()
        page = browser.page(probe.url)
        page.wait("$('live').textContent === 'Live'")
        probe.run("bodies")
        probe.run("stream")
        probe.run("event Ale")
        deadline = time.monotonic() + 60
        while "Ale" not in probe.get("exchanges/5")[2] and time.monotonic() < deadline:  # the bytes are recorded later
            time.sleep(0.02)
        if command == "kill":
            page.wait("rows.size === 5 && kept.size === 5")
            os.kill(probe.process.pid, signal.SIGSTOP)
            page.run("select(1, true); choose('response')")
            check("a stopped program does not delay the details", "Ale &amp; Co" in page.run("$('panel').innerText"))
            probe.process.kill()
        else:
            probe.process.stdin.write(command + "\n")
            probe.process.stdin.flush()
        if command != "stop":
            probe.process.wait(timeout=60)
        page.wait("$('live').className === 'live off'")
        expected = ["/v1/xml", "/v1/octets", "/v1/hops", "/v1/caused", "/v1/stream"] + (["/v1/any/last"] if command == "exit" else [])
        paths = page.run("update(); shown.map(row => row.path)")
        check(f"{command}: all exchanges are listed", paths == expected, paths)
        for number in range(1, len(expected) + 1):
            page.run(f"select({number}, true); choose('response')")
            page.wait("!isLoading")
            text = page.run("$('panel').innerText")
            check(f"{command}: the details of {expected[number - 1]} remain", "has ended" not in text and "Loading" not in text, text)
        if command == "exit":
            check("exit: the last response remains", '"ok": true' in text, text)
        if command != "kill":
            page.run("select(5, true)")
            page.wait("!isLoading")
            check(f"{command}: the events of an open stream remain", "Ale" in page.run("$('panel').textContent"),
                  page.run("$('panel').textContent"))
        page.run("$('bodies').click(); $('filter').value = 'ale &amp'; $('filter').dispatchEvent(new Event('input'))")
        page.wait("bodyMatches !== null")
        check(f"{command}: bodies are searched", page.run("shown.map(row => row.path)") == ["/v1/xml"], page.run("[...bodyMatches]"))
        errors = [error for error in page.errors() if "Failed to load" not in error and "ERR_" not in error]
        check(f"{command}: the page has no errors", errors == [], errors)
        if command == "stop":
            probe.close()
