"""Tests the views of the inspector's page: bodies, requests, events, messages, sorting, waterfall, archives."""
import glob
import json
import os
import re
import time

ATTACK = "</pre></script><img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>"


def last(path):
    return f"[...rows.values()].filter(row => row.path === {json.dumps(path)}).pop()"


def open_row(page, path, part="response"):
    """Shows a tab of the last exchange with a path, and returns its text."""
    page.wait(f"{last(path)} && {last(path)}.state !== 'active'")
    page.run(f"select({last(path)}.number, true)")
    page.wait("detail && detail.summary.number === selected && !isLoading")
    page.run(f"document.querySelector('[data-tab={part}]').click()")
    return page.run("$('panel').innerText")


def press(page, label):
    page.run(f"""[...$('panel').querySelectorAll('button')]
        .find(button => button.innerText.startsWith({json.dumps(label)})).click()""")


def downloaded(folder, name):
    path, deadline = os.path.join(folder, name), time.monotonic() + 60
    while not os.path.exists(path) or glob.glob(folder + "/*.crdownload"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} is not downloaded")
        time.sleep(0.05)
    with open(path, "rb") as file:
        return file.read()


def test_bodies(check, page, probe, downloads):
    probe.run("bodies")
    text = open_row(page, "/v1/xml")
    check("XML is formatted", '<beers>\n  <beer id="1">Ale &amp; Co</beer>\n  <!-- none -->\n  <empty/>\n</beers>' in text, text)
    press(page, "Save")
    data = downloaded(downloads, "xml.xml")
    check("a saved body is unchanged", data == b'<beers><beer id="1">Ale &amp; Co</beer><!-- none --><empty/></beers>', data)
    page.run("window.copied = null; navigator.clipboard.writeText = async text => { window.copied = text; }")
    press(page, "Copy")
    check("a copied body is unchanged", page.wait("window.copied") == data.decode())
    text = open_row(page, "/v1/brewers/7")
    page.run("$('panel').querySelectorAll('.fold')[1].click()")
    folded = page.run("$('panel').innerText")
    check("JSON folds", "Double Bag" in text and "Double Bag" not in folded and "Long Trail" in folded, folded)
    check("folded JSON retains its text", "Double Bag" in page.run("$('panel').querySelector('pre').textContent"))
    press(page, "Fold all")
    check("all containers fold", page.run("$('panel').querySelectorAll('.folded').length > 2"))
    press(page, "Unfold all")
    check("all containers unfold", page.run("$('panel').querySelectorAll('.folded').length") == 0)
    open_row(page, "/v1/label")
    page.run("$('panel').querySelector('details').open = true")
    page.wait("$('panel').querySelector('.hex')?.textContent.startsWith('00000000  89 50 4e 47')")
    text = open_row(page, "/v1/octets")
    check("the reason why bytes are not shown names the option", "showsBinaryBodies" in text and "00000000" not in text, text)
    request = open_row(page, "/v1/xml", "request")
    check("header fields are marked as those of the program", "As passed to the session" in request, request)
    page.run("close()")


def test_without_request(check, page, probe):
    """An exchange without a request, such as a cache hit, has panels of its own."""
    probe.run("cached")
    page.wait("[...rows.values()].filter(row => row.path === '/v1/cached' && row.state === 'ended').length === 2")
    for part in ("overview", "request", "response", "code", "send"):
        other = open_row(page, "/v1/report", part)
        text = open_row(page, "/v1/cached", part)
        check(f"{part} of a cache hit is not that of the exchange before", text and text != other, text)
    text = open_row(page, "/v1/cached", "response")
    check("a cache hit shows its body", '"name": "from the cache"' in text and "No request was sent" in text, text)
    open_row(page, "/v1/report", "response")
    text = page.run(f"kept.clear(); select({last('/v1/cached')}.number, true); $('panel').innerText")
    check("the panel of the exchange before is removed at once", text == "Loading…", text)
    page.wait("!isLoading")
    page.run("close()")


def test_page_error(check, page):
    """An error of the page is shown and does not leave another exchange's panel."""
    open_row(page, "/v1/report", "response")
    page.run("panels.response = () => { throw new Error('deliberate'); }")
    text = open_row(page, "/v1/label")
    check("an error replaces the panel", "The page has an error" in text and "deliberate" in text, text)
    page.wait("!$('message').hidden && $('message').textContent.includes('deliberate')")
    check("an error is reported to the browser", any("deliberate" in error for error in page.errors()), page.errors())
    page.run("Promise.reject(new Error('later')); 1")
    page.wait("$('message').textContent.includes('later')")


def test_binary(check, page, probe):
    probe.run("socket")
    probe.run("message Ale")
    open_row(page, "/v1/chat")
    page.wait("$('panel').querySelectorAll('.event').length === 3")
    rows = [row for row in message_rows(page) if "binary" in row]
    check("the bytes of a message are hexadecimal", [row.split(" B ")[-1][:23] for row in rows]
          == ["00 01 02 03 04 05 06 07"] and rows[0].endswith(" 2f"), rows)
    page.run("[...$('panel').querySelectorAll('.event')].find(row => row.textContent.includes('binary')).open = true")
    page.wait("$('panel').querySelector('.event .hex')?.textContent.includes('00000020  20 21 22')")
    probe.run("bodies")
    text = open_row(page, "/v1/octets")
    check("bytes are shown", "00000020  20 21 22 23 24 25 26 27" in text and "!\"#$%&'" in text, text[:400])
    check("bytes are marked as not redacted", "not redacted" in text)
    lines = "$('panel').querySelector('.hex').textContent.trim().split('\\n').at(-1).slice(0, 8)"
    first = page.run(lines)
    press(page, "Show more (4.5 kB)")
    final = page.run(lines)
    check("the first 64 KiB are shown, then the rest", first in ("0000fff0", "0000fff8") and final > "00011100", [first, final])
    check("the end has no button", page.run("$('panel').querySelector('.more').hidden"))
    page.run("close()")


def test_search(check, page):
    page.run("$('bodies').click(); $('filter').focus()")
    page.type("double BAG")
    page.wait("bodyMatches !== null")
    page.wait("shown.length > 0 && shown.length < rows.size")
    paths = page.run("shown.map(row => row.path)")
    check("a text is found in bodies", "/v1/brewers/7" in paths and "/v1/report" not in paths, paths)
    open_row(page, "/v1/brewers/7")
    check("the text is marked in a body", page.run("CSS.highlights.get('found').size") == 1)
    page.run("close(); $('filter').value = ''")
    for secret in ("canary-1", "canary-token", "canary"):
        page.run("$('filter').focus(); bodyMatches = null")
        page.run(f"$('filter').value = '{secret}'; $('filter').dispatchEvent(new Event('input'))")
        page.wait("bodyMatches !== null")
        check("no secret is found in bodies", page.run("bodyMatches.size") == 0, page.run("[...bodyMatches]"))
    page.run("$('filter').value = ''; $('filter').dispatchEvent(new Event('input')); $('bodies').click()")
    check("the search in bodies ends", page.run("bodyMatches === null && shown.length === rows.size"))


def test_requests(check, page):
    before = page.run("lines.length")
    page.run(f"close(); select({last('/v1/hops')}.number); list.focus()")
    page.press("ArrowRight")
    page.wait(f"lines.length === {before + 2}")
    found = page.run(f"lines.filter(line => line[0] === {last('/v1/hops')}).map(([row, index]) =>"
                     "index === undefined ? row.path : row.tries[index].path + ' ' + row.tries[index].status)")
    check("a redirect is a row", found == ["/v1/hops", "/v1/hops 302", "/v1/any/hops 200"], found)
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("detail && detail.summary.number === selected && attempt === 0")
    page.run("document.querySelector('[data-tab=response]').click()")
    text = page.run("$('panel').innerText")
    check("a row of a request shows its response", "302" in text and "/v1/any/hops" in text, text)
    check("the row of a request is announced",
          page.run("list.getAttribute('aria-activedescendant')") == page.run(f"'row' + {last('/v1/hops')}.number + '-0'"))
    page.run("close(); list.focus()")
    page.press("ArrowLeft")
    page.wait(f"lines.length === {before}")
    check("the rows of requests close", page.run("selectedLine() >= 0"))
    page.run(f"toggle({last('/v1/specials?limit=3')}.number)")
    check("attempts are rows", page.run("lines.length") == before + 3)
    page.run(f"toggle({last('/v1/specials?limit=3')}.number)")


def test_events(check, page, probe):
    probe.run("stream")
    probe.run("event Ale")
    open_row(page, "/v1/stream")
    page.wait("$('panel').querySelectorAll('.event').length === 1")
    page.run("$('panel').querySelector('.event').open = true")
    page.wait("$('panel').querySelector('.event pre')?.textContent.includes('\"name\": \"Ale\"')")
    probe.run("event Dubbel")
    page.wait("$('panel').querySelectorAll('.event').length === 2")
    text = page.run("$('panel').textContent")  # innerText omits rows that are not rendered yet
    check("events are rows while they arrive", "beer" in text and "Dubbel" in text, text)
    check("the identifier of an event is shown", "id: 7" in text, text)
    check("an open event remains open", page.run("$('panel').querySelector('.event').open"))
    found = page.run("""parseEvents("event: a\\rdata: 1\\r\\ndata\\n: comment\\n\\n\\nid: x\\n\\ndata:2\\n\\ndata: 3")""")
    check("an event stream is parsed as browsers do", found == [
        [{"id": "", "type": "a", "data": "1\n", "emptyLines": 1},
         {"id": "x", "type": "message", "data": "2", "emptyLines": 4}], True], found)
    page.run("close()")


def message_rows(page):
    """Returns the texts of the rows, also of those that are not visible and therefore not rendered."""
    return page.run("[...$('panel').querySelectorAll('.event summary')].map(row =>"
                    " [...row.children].map(part => part.textContent).join(' '))")


def test_messages(check, page, probe):
    probe.run("socket")
    probe.run("message Ale")
    open_row(page, "/v1/chat")
    page.wait("$('panel').querySelectorAll('.event').length === 3")
    rows = message_rows(page)
    check("a sent message has its time, kind, size and content",
          re.fullmatch(r"↑ [\d.]+ [mµ]?s text 3 B Ale", rows[0]) is not None, rows)
    received = sorted(rows[1:], key=lambda row: "binary" in row)
    check("a received message is JSON without secrets",
          re.fullmatch(r'↓ [\d.]+ [mµ]?s text \d+ B \{.*"echo":"Ale".*\}', received[0]) is not None
          and "[redacted]" in received[0] and "canary" not in received[0], rows)
    check("bytes are not shown", "binary 200 B 200 bytes are not shown" in received[1], rows)
    check("directions have names", page.run(
        "[...$('panel').querySelectorAll('.event b')].map(mark => mark.ariaLabel)") == ["sent", "received", "received"])
    page.run("[...$('panel').querySelectorAll('.event')].find(row => row.textContent.includes('echo')).open = true")
    page.wait("$('panel').querySelector('.event pre')?.textContent.includes('\\n  \"echo\": \"Ale\"')")
    probe.run("message Dubbel")
    page.wait("$('panel').querySelectorAll('.event').length === 6")
    check("messages are rows while they arrive", "Dubbel" in page.run("$('panel').textContent"))
    check("an open message remains open", page.run("$('panel').querySelectorAll('.event[open] pre').length") == 1)
    check("the connection is shown as open", "the connection is open" in open_row(page, "/v1/chat", "overview"))
    probe.run("message many")
    open_row(page, "/v1/chat")
    page.wait("detail.messages.dropped === 207")
    page.wait("$('panel').innerText.includes('207 older messages were dropped')")
    check("the last 1,000 messages are shown", len(message_rows(page)) == 1000 and
          message_rows(page)[-1].endswith("text 11 B number 1199"), message_rows(page)[-1])
    duration = page.measure("""(() => {
        const start = performance.now();
        show();
        $('panel').getBoundingClientRect();
        return performance.now() - start;
    })()""", lambda duration: duration < 250)
    print(f"1,000 messages: {duration:.1f} ms", flush=True)
    check("1,000 messages are shown in less than 250 ms", duration < 250, duration)
    probe.run("message close")
    page.wait(f"{last('/v1/chat')}.state === 'ended'")
    page.wait("$('panel').innerText.includes('Closed with the code 1008: token=[redacted]')")
    row = page.run(last("/v1/chat"))
    check("a closed connection is listed with the bytes received",
          row["type"] == "websocket" and row["size"] > 10_000, row)
    check("a connection closed with an error is a failure with its reason",
          row["error"] == "webSocketClosed: the server closed the connection with code 1008: token=[redacted]", row)
    check("no secret is in the messages", "canary" not in page.run("JSON.stringify(detail)"))
    page.run("fetch('archive').then(response => response.text()).then(text => { window.archive = text; })")
    entries = json.loads(page.wait("window.archive"))["log"]["entries"]
    entry = [entry for entry in entries if entry["request"]["url"].endswith("/v1/chat")][-1]
    check("the archive has the messages", entry["_resourceType"] == "websocket"
          and len(entry["_webSocketMessages"]) == 1000 and entry["_webSocketMessagesOmitted"] == 208, entry["request"])
    shown = message_rows(page)
    page.run("importFile(new File([window.archive], 'a.har'))")
    page.wait("imported.size > 0")
    number = page.run("[...imported.values()].find(({ summary }) => summary.url.startsWith('wss:')).summary.number")
    page.run(f"select({number}, true)")
    text = page.run("$('panel').textContent")
    check("an imported archive has the messages", "208 older messages" in text and "number 1199" in text, text[:400])
    contents = [row.split(" B ", 1)[-1] for row in shown]
    check("an imported message is unchanged", [row.split(" B ", 1)[-1] for row in message_rows(page)] == contents)
    page.run("tell(''); close(); removeImported(); update()")


def test_causes(check, page):
    text = open_row(page, "/v1/undecodable", "overview")
    check("a failure is shown with its code and its cause", "decoding" in text and "Caused by" in text, text)
    text = open_row(page, "/cut", "overview")
    check("a failure is shown with the bytes received", "10 B" in text, text)
    page.run("close()")


def test_sorting(check, page):
    page.run("document.querySelector('#head [data-sort=size]').click()")
    sizes = page.run("shown.map(row => row.size || 0)")
    check("a column sorts in ascending order", sizes == sorted(sizes) and sizes[-1] > sizes[0], sizes)
    page.run("document.querySelector('#head [data-sort=size]').click()")
    sizes = page.run("shown.map(row => row.size || 0)")
    check("a second click sorts in descending order", sizes == sorted(sizes, reverse=True), sizes)
    page.run("$('sort').value = 'url'; $('sort').dispatchEvent(new Event('change'))")
    paths = page.run("shown.map(row => row.path)")
    check("the menu of a narrow window sorts", paths == sorted(paths), paths)
    page.run("$('sort').value = 'number'; $('sort').dispatchEvent(new Event('change'))")
    found = page.run("shown.map(row => row.number)")
    check("the order of arrival is restored", found == sorted(found), found)


def test_waterfall(check, page):
    page.run("setZoom(null); close(); list.scrollTop = 0; select(shown[0].number); zoomBy(0.1)")
    length = page.run("zoomShares()[1] - zoomShares()[0]")
    check("the waterfall zooms", abs(length - 0.1) < 0.01, length)
    hidden = "document.querySelectorAll('.list .fall div[hidden]').length > 0"
    # If the test is slow, a tenth of the whole time contains all visible exchanges.
    for _ in range(6):
        if not page.run(hidden):
            page.run("zoomBy(0.5)")
    check("bars outside of the interval are hidden", page.run(hidden))
    page.run("pan(2)")
    check("a zoomed waterfall moves", page.run("zoom[0] > range[0] && zoom[1] <= range[1] + 1"))
    page.run("$('zoomed').click()")
    check("the whole waterfall can be shown", page.run("zoom === null && !document.querySelector('.list .fall div[hidden]')"))


def entry(url, body, kind, **changes):
    return {
        "startedDateTime": "2026-01-01T00:00:00.000Z", "time": 120,
        "request": {"method": "GET", "url": url, "httpVersion": "HTTP/2", "headers": [{"name": "X-A", "value": ATTACK}]},
        "response": {"status": 200, "httpVersion": "HTTP/2", "headers": [{"name": "Content-Type", "value": kind}],
                     "content": {"size": len(body), "mimeType": kind, "text": body}},
        "timings": {"dns": 10, "connect": 30, "ssl": 20, "send": 1, "wait": 50, "receive": 9}, "cache": {},
    } | changes


def test_import(check, page):
    bodies = [("application/json", json.dumps({ATTACK: ATTACK})), ("application/xml", f"<a b='{ATTACK}'>{ATTACK}<!-- {ATTACK}"),
              ("text/event-stream", f"data: {ATTACK}\n\n"), ("text/html", ATTACK), ("image/svg+xml", f"<svg>{ATTACK}</svg>"),
              ("image/png", ATTACK)]
    entries = [entry(f"https://archive.example.com/{index}?{ATTACK}", body, kind)
               for index, (kind, body) in enumerate(bodies)]
    entries[5]["response"]["content"]["encoding"] = "base64"
    entries.append(entry(f"wss://archive.example.com/{ATTACK}", "", ""))
    entries[6]["_webSocketMessages"] = [
        {"type": "receive", "time": 1767225600.5, "opcode": 1, "data": ATTACK}, {"data": 7}, None,
        {"type": ATTACK, "time": {}, "opcode": ATTACK, "data": json.dumps({ATTACK: ATTACK})},
        {"type": "send", "time": 1e300, "opcode": 2, "data": ATTACK},
        {"opcode": 2, "data": "A" * 60 + "\n" + "AQL/" * 9}]
    archive = {"log": {"version": "1.2", "entries": entries + [
        None, {}, {"request": {"url": 7}}, entry("x", "", "", startedDateTime="no date")]}}
    before = page.run("rows.size")
    page.run(f"importFile(new File([{json.dumps(json.dumps(archive))}], 'a.har'))")
    page.wait(f"rows.size === {before + 7}")
    check("damaged entries are counted", page.run("$('message').innerText") == "4 entries are damaged.",
          page.run("$('message').innerText"))
    added = 0
    for number in range(-11, -4):
        page.run(f"select({number}, true)")
        for part in ("overview", "request", "response", "code"):
            page.run(f"document.querySelector('[data-tab={part}]').click()")
        page.run("document.querySelector('[data-tab=response]').click()")
        page.run("$('panel').querySelectorAll('details').forEach(row => { row.open = true; })")
        added += page.run("document.querySelectorAll('img:not(.picture), script[src], svg, pre script').length")
    page.run("select(-11, true); document.querySelector('[data-tab=overview]').click()")
    text = page.run("$('panel').innerText")
    check("an imported exchange is shown with its phases", "HTTP/2" in text and "TLS 20 ms" in text and "imported" in text, text)
    time.sleep(0.2)
    check("an imported archive runs nothing", page.run("window.attacked") is None)
    check("an imported archive adds no element", added == 0, added)
    for text in ("", "{", "[]", '{"log": {"entries": 7}}', "null", "[" * 200_000):
        page.run("tell('')")
        page.run(f"importFile(new File([{json.dumps(text)}], 'a.har'))")
        page.wait("!$('message').hidden")
        check("a damaged archive is refused", "damaged" in page.run("$('message').innerText"))
    page.run("tell(''); importFile({ size: 60 * 1024 * 1024 })")
    check("a huge archive is refused", "larger than" in page.run("$('message').innerText"))
    page.run("tell(''); close(); removeImported(); update()")
    check("imported exchanges can be removed", page.run("rows.size") == before)


def test_ten_thousand(check, page):
    page.run("""(() => {
        const start = Date.now();
        for (let index = 0; index < 10000; index += 1) {
            add({ number: index - 10000, method: "GET", url: "https://h.example.com/many/" + index * 7919 % 10000,
                name: "x", state: "ended", status: 200, attempts: 1, size: index * 31 % 977, start: start + index,
                duration: index % 100, spans: [["attempt", 0, index % 100]] });
        }
    })()""")
    times = page.measure("""(() => ["number", "size", "url", "time"].map(key => {
        const start = performance.now();
        sorting = { key, isDescending: true };
        update();
        list.getBoundingClientRect();
        return performance.now() - start;
    }))()""", lambda times: sorted(times)[2] < 200)
    print("sorting of 10,000 exchanges: " + ", ".join(f"{ms:.1f} ms" for ms in times), flush=True)
    check("10,000 exchanges sort in less than 200 ms", sorted(times)[2] < 200, times)
    check("10,000 exchanges have few elements", page.run("pool.length") < 100)
    page.run("sorting = { key: 'number', isDescending: false }; update(); list.focus()")
    page.press("End")
    check("the last of 10,000 exchanges is shown", page.run("selectedLine() === lines.length - 1"
          " && document.querySelector('.row[aria-selected=true]').offsetTop >= list.scrollTop"))
    page.run("for (const number of [...rows.keys()]) if (number < 0) rows.delete(number); update()")


def test_narrow(check, page):
    page.resize(400, 780)
    page.wait("rowHeight() === 58")
    check("a window of 400 pixels shows the whole width", page.run("document.documentElement.scrollWidth") <= 400)
    for path, part in (("/v1/octets", "response"), ("/v1/stream", "response"), ("/v1/chat", "response"), ("/v1/xml", "request"), ("/cut", "overview")):
        open_row(page, path, part)
        check(f"the details of {path} fit into 400 pixels", page.run(
            "document.documentElement.scrollWidth <= 400 && $('panel').scrollWidth <= $('panel').clientWidth"),
            page.run("$('panel').scrollWidth"))
    page.run("close()")
    check("the menu sorts in a narrow window", page.run("$('sort').offsetParent !== null"))
    page.resize(1280, 800)


def test_send(check, page):
    open_row(page, "/v1/brewers/7", "send")
    fields = page.run("$('send-header-fields').value")
    check("the fields of a request to change are redacted", "Authorization: [redacted]" in fields, fields)
    before = page.run("Math.max(...rows.keys())")
    page.run("$('send-method').value = 'PUT'; $('panel').querySelector('.primary').click()")
    page.wait(f"rows.get({before + 1})?.state === 'ended'")
    row = page.run(f"rows.get({before + 1})")
    check("a changed request is sent", row["method"] == "PUT" and row["path"] == "/v1/brewers/7", row)
    page.wait(f"selected === {before + 1} && tab === 'overview' && detail?.summary.number === selected")
    open_row(page, "/v1/brewers/7", "send")
    page.run("$('send-url').value = 'https://evil.example.com/'; $('panel').querySelector('.primary').click()")
    page.wait("$('panel').querySelector('.error')?.textContent.includes('Authorization')")
    check("a secret is not sent to another origin", page.run("Math.max(...rows.keys())") == before + 1)
    page.run("schedule(); load()")
    page.wait("!isLoading")
    check("an update does not replace what is being changed", page.run("$('send-url').value") == "https://evil.example.com/")
    page.run("choose('overview'); close()")


def test_views(check, page, probe, downloads):
    test_bodies(check, page, probe, downloads)
    test_search(check, page)
    test_requests(check, page)
    test_events(check, page, probe)
    test_messages(check, page, probe)
    test_causes(check, page)
    test_send(check, page)
    test_sorting(check, page)
    test_waterfall(check, page)
    test_import(check, page)
    test_narrow(check, page)
    test_ten_thousand(check, page)
