"""Tests what a reader who does not know the inspector's page finds in it: reasons, durations, secrets, links, marks."""
import datetime
import json
import os

import inspector_views as views

TOKEN = "[...rows.values()].find(row => row.path === '/oauth/token')"


def show(page, path, part="overview", index=-1):
    """Shows a tab of the first exchange with a path, and returns its text."""
    row = f"[...rows.values()].find(row => row.path === {json.dumps(path)})"
    page.run(f"select({row}.number, true, {index}); choose({json.dumps(part)})")
    page.wait("detail && detail.summary.number === selected && !isLoading")
    return page.run("$('panel').innerText")


def line(page, path):
    """Returns the text of the row of the first exchange with a path."""
    return page.run(f"""(() => {{ const row = [...rows.values()].find(row => row.path === {json.dumps(path)});
        return document.getElementById('row' + row.number).innerText; }})()""")


def test_pieces(check, page):
    """A short text is complete at once, however slow the computer is."""
    text = page.run("""(() => {
        const pre = el("pre"), now = performance.now, steps = formatText("Long Trail", pre, "");
        let time = 0;
        performance.now = () => time += 1000;
        const notes = inPieces(pre, steps, 8);
        performance.now = now;
        return pre.textContent + notes.map(note => note.textContent).join("");
    })()""")
    check("a short text is formatted in one step", text == "Long Trail", text)


def test_five_questions(check, page):
    retried = page.run("(() => { $('states').querySelector('[data-state=retried]').click(); return shown.map(row => row.path); })()")
    check("a chip finds the request that was retried", retried == ["/v1/stock"], retried)
    check("the row of a retried request counts its retries", "1 retry" in line(page, "/v1/stock"), line(page, "/v1/stock"))
    text = show(page, "/v1/stock")
    check("the reason of a retry is in the overview", "Attempt 2: retry: status 503" in text, text)
    check("the pause before a retry has its reason", "pause before the retry: status 503" in text, text)
    cached = page.run("(() => { close(); $('states').querySelector('[data-state=cached]').click(); return shown.map(row => row.path); })()")
    check("a chip finds the response from the cache", cached == ["/v1/cached"], cached)
    page.run("$('states').querySelector('[data-state=all]').click()")
    text = show(page, "/v1/annual-report")
    check("the duration is divided", "Where the time went" in text.replace("WHERE THE TIME WENT", "Where the time went")
          and "before the first attempt: interceptors" in text and "waiting for the response" in text, text)
    parts = page.run("[...$('panel').querySelectorAll('.spent .value')].map(value => parseInt(value.textContent))")
    check("the parts of the duration have their shares", 97 <= sum(parts[1::2]) <= 103 and parts[1] >= parts[3], parts)
    text = show(page, "/v1/beers/7")
    check("a failed decoding is explained", "not of type String at .name" in text, text)
    text = show(page, "/v1/beers/7", "response")
    check("a failed decoding shows what was received", '"abv": "strong"' in text, text)
    page.run("close()")


def test_secrets(check, page):
    """D1: secrets in bodies count."""
    page.run("$('states').querySelector('[data-state=secrets]').click()")
    found = page.run("shown.map(row => row.path)")
    check("secrets in header fields and in bodies are selected", found == ["/oauth/token", "/v1/brewers", "/v1/devices/1"], found)
    titles = page.run("[...list.querySelectorAll('.row:not([hidden]) em.secret')].map(mark => [mark.textContent, mark.title])")
    check("a mark names what was sent", titles == [
        ["secret: body", "Secrets were sent: password in the body"], ["secret: header", "Secrets were sent: Authorization"],
        ["secret: body", "Secrets were sent: push_token in the body"]], titles)
    page.run("$('states').querySelector('[data-state=all]').click()")
    text = show(page, "/oauth/token")
    check("the overview names the secrets that were sent", "password in the body" in text, text)
    page.run("close()")


def test_outer_rows(check, page):
    """D2: an exchange without a request of its own is linked with its request."""
    rows = page.run("[...rows.values()].filter(row => row.path === '/v1/beers/7').map(row => [row.number, row.parent ?? 0, row.method])")
    outer = rows[0][0]
    check("a typed request has the method and the URL of its request", rows[1:] == [[outer + 1, outer, "GET"]] and rows[0][2] == "GET", rows)
    check("the row of a typed request has its type", "BeerRequest" in page.run(f"document.getElementById('row{outer}').innerText"))
    text = show(page, "/v1/beers/7", "response")
    check("the response of a typed request links to its request", "No request was sent" not in text
          and page.run("$('panel').querySelectorAll('.link').length") == 1, text)
    page.run("$('panel').querySelector('.link').click(); choose('overview')")
    page.wait(f"detail && detail.summary.number === {outer + 1}")
    page.run("[...$('panel').querySelectorAll('.link')].find(link => link.textContent.includes('BeerRequest')).click()")
    page.wait(f"detail && detail.summary.number === {outer}")
    page.run("close()")


def test_time(check, page):
    """D3: time outside of requests has a name."""
    text = show(page, "/v1/annual-report")
    gaps = page.run("[...$('panel').querySelectorAll('.chart .gap')].length")
    check("the time before the first attempt is in the timeline", gaps >= 1 and "before" in text, text)
    text = show(page, "/second")
    if page.run("detail.attempts[0].phases.length > 0"):
        check("the queue of the session is a phase", "queue " in text and "queue of the session" in text, text)
    page.run(f"select([...rows.values()].findLast(row => row.path === '/v1/cached').number, true)")
    page.wait("detail && detail.summary.number === selected")
    text = page.run("$('panel').innerText")
    check("the time of a cache hit is that of the cache", "cache lookup" in text and "no request was sent" in text, text)
    found = page.run("""(() => {
        const kept = detail;
        detail = { attempts: [{ number: 1, start: 300, duration: 100, phases: [["waiting", 0, 90]] },
            { number: 2, start: 700, duration: 100, phases: [] }], explanation: [], events: [
            { kind: "refresh", start: 0, duration: 250, detail: "the credential expires" },
            { kind: "retry", start: 400, detail: "status 503" }, { kind: "wait", start: 400, duration: 200, detail: "" },
            { kind: "storage", start: 810, duration: 90, detail: "stored" }] };
        const row = { number: 0, duration: 1000, state: "ended" };
        const found = partsOfTime(row).map(({ text, from, to }) => [text, from, to]);
        detail = kept;
        return found;
    })()""")
    check("a duration is divided completely", [part[1:] for part in found] == [
        [0, 250], [250, 300], [300, 390], [390, 400], [400, 600], [600, 700], [700, 800], [800, 810], [810, 900], [900, 1000]]
        and [part[0].split(":")[0] for part in found] == [
            "refreshing the credential", "before the first attempt", "waiting for the server's response",
            "attempt, outside of the phases that the session measures", "pause before the retry",
            "between the attempts", "attempt", "after the last response", "storage", "after the last response"], found)
    page.run("close()")


def test_chips(check, page):
    """A chip counts the rows that it shows, also with opened attempts."""
    found = page.run("""(() => {
        toggle([...rows.values()].find(row => row.path === '/v1/stock').number, true);
        const counts = states.map(([id]) => {
            const chip = $('states').querySelector(`[data-state="${id}"]`);
            chip.click();
            const elements = list.querySelectorAll('.row:not([hidden], .part)').length;
            return [id, Number(chip.querySelector('b').textContent), shown.length, Math.min(elements, shown.length)];
        });
        state = 'all';
        toggle([...rows.values()].find(row => row.path === '/v1/stock').number, false);
        return counts;
    })()""")
    check("a chip counts the rows that it shows", all(count == shown == elements for _, count, shown, elements in found), found)


def test_details(check, page):
    """The title, the hint of the filter, and what the page marks in a body."""
    show(page, "/v1/brewers/99")
    page.run("$('filter').value = 'label'; $('filter').dispatchEvent(new Event('input'))")
    check("details of a row that the filter hides have a hint", page.run("$('unlisted').innerText") == "Not in the filtered list"
          and page.run("$('unlisted').offsetHeight > 10"))
    page.run("$('filter').value = ''; $('filter').dispatchEvent(new Event('input'))")
    check("details of a listed row have no hint", page.run("$('unlisted').hidden"))
    text = show(page, "/v1/brewers/99")
    check("the code of a refused status is shown once", text.count("unacceptableStatus") == 1, text)
    show(page, "/v1/beers/7", "response")
    marked = page.run("[...$('panel').querySelectorAll('pre .wrong')].map(value => value.previousElementSibling.textContent + value.textContent)")
    check("the value that cannot be decoded is marked", marked == ['"name"7'], marked)
    marked = page.run("""[".b[1].c", ".b", ".b[1]", ".a", ".b[0]", ".x", undefined].map(path => {
        const pre = el("pre");
        for (const _ of formatJSON('{"c":0,"a":[1],"b":[{"c":1},{"a":2,"c":[3,"]"]}],"d":{"c":5}}', pre, "", path)) ;
        return [...pre.querySelectorAll(".wrong")].map(value => value.textContent.replace(/\\s/g, ""));
    })""")
    check("the path of a value is followed", marked == [
        ['[3,"]"]'], ['[{"c":1},{"a":2,"c":[3,"]"]}]'], ['{"a":2,"c":[3,"]"]}'], ["[1]"], ['{"c":1}'], [], []], marked)
    paths = page.run("['x: no value for \\'a\\' at .b[1].c', 'x at the top level', 'timedOut', undefined].map(wrongPlace)")
    check("the path of an error is found", paths[0] == ".b[1].c" and not any(paths[1:]), paths)
    broken = []
    for width in (900, 1000, 1100, 1280, 1440):
        page.resize(width, 800)
        page.wait(f"innerWidth === {width}")
        for path in ("/v1/brewers/99", "/v1/annual-report", "/oauth/token"):
            show(page, path)
            broken += page.run("""(() => {
                const walker = document.createTreeWalker($("title"), NodeFilter.SHOW_TEXT), found = [];
                const range = document.createRange();
                while (walker.nextNode()) {
                    const { data } = walker.currentNode;
                    const top = at => { range.setStart(walker.currentNode, at); range.setEnd(walker.currentNode, at + 1);
                        return range.getBoundingClientRect().top; };
                    for (let at = 1; at < data.length; at += 1) {
                        if (/\\w\\w/.test(data.slice(at - 1, at + 1)) && top(at) > top(at - 1) + 4) found.push(data + " at " + at);
                    }
                }
                return found;
            })()""")
    check("no word of the title is broken", broken == [], broken)
    page.resize(1280, 800)
    page.run("close()")


def test_keys(check, page):
    """D4: the arrow down leaves the chips."""
    page.run("$('states').querySelector('[data-state=all]').focus()")
    page.press("ArrowRight")
    check("the arrow right selects the next chip", page.run("state") == "1", page.run("state"))
    page.press("ArrowLeft")
    page.press("ArrowDown")
    check("the arrow down moves to the list", page.run("state === 'all' && document.activeElement === list"), page.run("state"))
    page.run("$('states').querySelector('[data-state=all]').focus()")
    page.press("ArrowUp")
    check("the arrow up moves to the filter", page.run("document.activeElement === $('filter')"))


def test_narrow(check, page):
    """D5, D6, D13: a window of 400 pixels."""
    page.resize(400, 780)
    page.wait("rowHeight() === 58")
    page.run("update()")
    bars = page.run("""[...list.querySelectorAll('.row:not([hidden]) .fall')].map(fall => {
        const box = fall.getBoundingClientRect(); return [Math.round(box.left), Math.round(box.right)]; })""")
    check("the bars of a narrow window have one axis", len({tuple(bar) for bar in bars}) == 1, bars)
    scale = page.run("(() => { const box = $('scale').getBoundingClientRect(); return [Math.round(box.left), Math.round(box.right)]; })()")
    check("the axis of a narrow window has a scale", [scale] == bars[:1] and page.run("$('scale').children.length > 1"), [scale, bars[:1]])
    check("a narrow window shows the state, the host and the count", page.run("""
        [$('live'), $('count'), list.querySelector('.row:not([hidden]) .url i')].every(element =>
            element.offsetWidth > 20 && element.getBoundingClientRect().right <= 400 && element.textContent !== '')"""),
          page.run("[$('live').offsetWidth, $('count').offsetWidth]"))
    page.run("$('states').scrollLeft = 0")
    check("chips that do not fit are indicated", page.run("showHints(); $('states').className") == "states after",
          page.run("$('states').className"))
    page.run("$('states').scrollLeft = 1000")
    page.wait("$('states').className === 'states before'")
    check("a narrow window has no wider content", page.run("document.documentElement.scrollWidth") <= 400)
    page.run("$('states').scrollLeft = 0")
    cut = page.run("""(() => {
        const context = document.createElement("canvas").getContext("2d"), cut = [];
        const look = (element, texts, room) => {
            const { font, paddingLeft, paddingRight } = getComputedStyle(element);
            context.font = font;
            const width = element.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - room;
            cut.push(...texts.filter(text => context.measureText(text).width > width).concat(width > 40 ? [] : [width]));
        };
        look($("filter"), [$("filter").placeholder], 0);
        $("bodies").click();
        look($("filter"), [$("filter").placeholder], 0);
        $("bodies").click();
        look($("sort"), [...$("sort").options].map(option => option.text), 16);
        const lines = new Set([$("filter"), $("helper"), $("bodies"), $("sort")].map(element => {
            const box = element.getBoundingClientRect(); return Math.round((box.top + box.bottom) / 2 / 6); }));
        return lines.size === 1 ? cut : [...cut, ...lines];
    })()""")
    check("the filter and the menu of a narrow window fit into one line", cut == [], cut)
    page.run("toggle([...rows.values()].find(row => row.path === '/v1/stock').number, true)")
    reason = page.run("(({ textContent: text, clientWidth, scrollWidth, clientHeight, scrollHeight, parentElement }) => [text, scrollWidth <= clientWidth,"
                      " scrollHeight <= Math.min(clientHeight, parentElement.clientHeight)])(list.querySelector('.row:not([hidden]) .reason'))")
    check("the reason of a retry is shown completely", reason[0].startswith("retry: status 503, pause of ") and reason[1:] == [True, True], reason)
    page.run("toggle([...rows.values()].find(row => row.path === '/v1/stock').number, false)")
    show(page, "/v1/beers/7")
    wide = page.run("[...$('panel').querySelectorAll('.link')].map(link => link.getBoundingClientRect().right - $('panel').clientWidth + 14)")
    check("links are within the margins", len(wide) >= 2 and max(wide) <= 0.5, wide)
    for path in ("/v1/beers/7", "/v1/stock"):
        show(page, path)
        bars = page.run("[...$('panel').querySelectorAll('.chart .track')].map(track => track.clientWidth)")
        check(f"the bars of {path} have the width of a narrow window", len(bars) > 2 and min(bars) > 250, bars)
    page.run("close()")
    for width, opens in ((400, False), (860, True), (1280, False), (1280, True)):
        page.resize(width, 780)
        page.wait(f"innerWidth === {width}")
        page.run("update(); " + ("select(shown[0].number, true)" if opens else "close()"))
        cut = page.run("""[...list.querySelectorAll('.row:not([hidden]) em')].filter(mark => {
            const box = mark.getBoundingClientRect(), cell = mark.parentElement.getBoundingClientRect();
            return mark.scrollWidth > mark.clientWidth || box.right > cell.right + 0.5; }).map(mark => mark.textContent)""")
        check(f"no mark is cut off at {width} pixels{', with details' if opens else ''}", cut == [], cut)
    page.run("close()")


def test_empty(check, page):
    """D7: the text of an empty list is within the list."""
    page.run("select(shown[0].number, true); $('filter').value = 'nothing at all'; update()")
    box = page.run("(() => { const a = $('empty').getBoundingClientRect(), b = $('detail').getBoundingClientRect(); return [a.right, b.left]; })()")
    check("the text of an empty list is not drawn over the details", box[0] <= box[1], box)
    page.run("$('filter').value = ''; update(); close()")


def test_ticks(check, page):
    """D8: ticks have different labels."""
    for shares in (1, 0.1, 0.01, 0.001, 0.0001):
        labels = page.run(f"""(() => {{
            setZoom(null);
            zoomTo(0.5, 0.5 + {shares});
            return ticks(900).map(({{ tick, at, label }}) => label ?? duration(tick));
        }})()""")
        check(f"the ticks of {shares} of the time differ", len(labels) > 1 and len(set(labels)) == len(labels), labels)
    page.run("setZoom(null)")
    labels = page.run("[[0, 1], [0.25, 0.05], [12, 2], [1050, 50], [1005, 5], [61050, 50], [120000, 60000]].map(pair => tickLabel(...pair))")
    check("a tick has the digits of its step", labels == ["0", "250 µs", "12 ms", "1.05 s", "1.005 s", "1:01.05 min", "2:00 min"], labels)
    check("short durations are in microseconds", page.run("[0.25, 0.0312, 1.5, 12].map(duration)") == ["250 µs", "31 µs", "1.5 ms", "12 ms"],
          page.run("[0.25, 0.0312, 1.5, 12].map(duration)"))


def test_breaks(check, page):
    """D9: shortened time is marked."""
    start = 1_000_000
    rows = [{"start": start + index * 50, "duration": 40} for index in range(20)]
    rows += [{"start": start + 60_000 + index * 50, "duration": 40} for index in range(20)]
    page.run(f"window.keptRows = [...rows]; rows.clear(); {json.dumps(rows)}.forEach((row, index) => add({{ number: index + 1,"
             " name: 'x', method: 'GET', url: 'https://h/x', state: 'ended', status: 200, attempts: 1,"
             " spans: [['attempt', 0, row.duration]], ...row })); hide(0); setZoom(null); update()")
    marks = page.run("[...document.querySelectorAll('#scale .break, #breaks .break')].map(mark => mark.title)")
    check("shortened time is marked in the waterfall and in the overview", len(marks) == 2
          and all("without any exchange are left out" in mark and mark.startswith("59.0 s") for mark in marks), marks)
    check("shortened time is marked in the rows", page.run("getComputedStyle(list.querySelector('.fall'), '::after').backgroundImage")
          .startswith("repeating-linear-gradient"))
    page.run("rows.clear(); for (const [number, row] of window.keptRows) rows.set(number, row); update()")


def test_colors(check, page):
    """D10: a result has one color."""
    page.run("setZoom(null); $('states').querySelector('[data-state=all]').click(); toggle([...rows.values()].find(row => row.path === '/v1/stock').number, true)")
    for path, part in (("/v1/brewers/99", None), ("/v1/stock", 0), ("/v1/beers/7", None), ("/v1/breweries", None)):
        found = page.run(f"""(async () => {{
            const row = [...rows.values()].find(row => row.path === {json.dumps(path)});
            const color = (element, name) => getComputedStyle(element)[name];
            close();
            list.scrollTop = lines.findIndex(line => line[0] === row) * rowHeight();
            render();
            const line = document.getElementById('row' + row.number + {json.dumps("" if part is None else f"-{part}")});
            const whole = document.getElementById('row' + row.number);
            const bars = [color(line.querySelector('.fall .attempt'), 'backgroundColor')];
            if (whole !== line) bars.push(color(whole.querySelector('.fall .attempt'), 'backgroundColor'));
            const text = color(line.querySelector('.badge'), 'color');
            select(row.number, true);
            while (!detail || detail.summary.number !== row.number) await new Promise(resolve => setTimeout(resolve, 10));
            choose('overview');
            bars.push(color($('panel').querySelector('.chart .attempt'), 'backgroundColor'));
            return [text, ...bars];
        }})()""")
        # The request that is sent for a typed request has succeeded.
        same = found[:-1] if path == "/v1/beers/7" else found
        check(f"{path} has one color", len(set(same)) == 1, found)
    page.run("toggle([...rows.values()].find(row => row.path === '/v1/stock').number, false); close()")


def test_attempts(check, page):
    """D11, D12: attempts are called so, and the overview of one is marked."""
    check("the marks name retries and redirects", "1 redirect" in line(page, "/v1/old-menu") and "requests" not in page.run("list.innerText"),
          line(page, "/v1/old-menu"))
    names = page.run("""[[3, 0], [0, 1], [1, 2]].map(([retries, redirects]) => causesOf({ tries: [{},
        ...Array(retries).fill({ kind: 'retry' }), ...Array(redirects).fill({ kind: 'redirect' })] }))""")
    check("retries and redirects are counted", names == ["3 retries", "1 redirect", "1 retry, 2 redirects"], names)
    number = page.run("[...rows.values()].find(row => row.path === '/v1/stock').number")
    page.run(f"toggle({number}, true)")
    label = page.run(f"document.getElementById('row{number}-1').ariaLabel")
    check("the row of an attempt is named", label.startswith("Attempt 2: ") and "retry: status 503" in label, label)
    whole = show(page, "/v1/stock")
    text = show(page, "/v1/stock", "overview", 0)
    check("the overview of an attempt is marked", "1 of 2" in text and text != whole
          and "Attempt 1 of 2" in page.run("$('title').innerText"), text)
    check("the overview of an attempt has its result", "Status 503" in text and "Where the time went".upper() not in text.upper(), text)
    page.run("$('panel').querySelector('.attempts button').click()")
    check("the overview of the exchange is a click away", page.run("$('panel').innerText") == whole)
    page.run(f"toggle({number}, false); close()")


def test_jumps(check, page):
    """D14, D15: the header and the selected row remain in place."""
    places = "[...document.querySelectorAll('header > *:not([hidden], .space), .tools > *, #states > *')].map(e => Math.round(e.getBoundingClientRect().left))"
    before = page.run(f"$('filter').value = ''; update(); {places}")
    page.run("$('filter').value = 'stock'; update()")
    check("the header does not move when counts change", page.run(places) == before, [before, page.run(places)])
    page.run("""$('filter').value = ''; for (let index = 1; index <= 200; index += 1) {
        add({ number: -index, name: 'x', method: 'GET', url: 'https://h/' + (index % 2 ? 'odd' : 'even'), state: 'ended', status: 200,
            attempts: 1, start: 1000 + index, duration: 1, spans: [['attempt', 0, 1]] }); }
        update(); select(-101)""")
    place = "(selectedLine() * rowHeight() - list.scrollTop)"
    page.run("$('filter').value = 'odd'; $('filter').dispatchEvent(new Event('input'))")
    filtered = page.run(place)
    page.run("$('filter').value = ''; $('filter').dispatchEvent(new Event('input'))")
    check("the selected row remains in place when a filter is cleared", page.run(place) == filtered, [filtered, page.run(place)])
    page.run("$('filter').value = 'even'; $('filter').dispatchEvent(new Event('input'))")
    page.run("$('filter').value = ''; $('filter').dispatchEvent(new Event('input'))")
    check("a selected row that returns is visible", page.run(f"{place} >= 0 && {place} < list.clientHeight - rowHeight()"), page.run(place))
    page.run("for (const number of [...rows.keys()]) if (number < 0) rows.delete(number); selected = null; update()")
    hints = page.run("[...document.querySelectorAll('#head button')].map(head => head.title)")
    check("columns name their order", hints[4] == "Sort: smallest first" and hints[5] == "Sort: shortest first", hints)
    options = page.run("[...$('sort').options].map(option => option.text)")
    check("the menu names the orders", "Longest time" in options and "Request A–Z" in options, options)


def test_filter(check, page):
    """D16: the filter explains itself."""
    found = {text: page.run(f"(() => {{ $('filter').value = {json.dumps(text)}; update(); return shown.map(row => row.path); }})()")
             for text in ("source:cache", "status:503", "duration:>1s", "size:>10k", "secret:*body", "secret:authorization", "duration:<1ms source:mock")}
    check("the filter finds sources", found["source:cache"] == ["/v1/cached"], found)
    check("the filter finds the status of an attempt", found["status:503"] == ["/v1/stock"], found)
    check("the filter compares durations and sizes", "/v1/annual-report" in found["duration:>1s"]
          and len(found["duration:>1s"]) < 5 and found["size:>10k"] == ["/v1/label"], found)
    words = {text: page.run(f"(() => {{ $('filter').value = {json.dumps(text)}; update(); return shown.map(row => row.path); }})()")
             for text in ("token", "secret")}
    check("a word finds a secret in a header field", "/v1/brewers" in words["token"] and "/v1/label" not in words["token"]
          and words["secret"] == ["/oauth/token", "/v1/brewers", "/v1/devices/1"], words)
    check("the filter finds secrets", found["secret:*body"] == ["/oauth/token", "/v1/devices/1"] and found["secret:authorization"] == ["/v1/brewers"], found)
    page.run("$('filter').value = ''; update()")
    placeholder = page.run("$('filter').placeholder")
    check("the filter has examples", all(text in placeholder for text in ("source:cache", "status:503", "duration:>1s")), placeholder)
    page.run("$('helper').focus()")
    page.press("Enter", "\r")
    page.wait("!$('help').hidden")
    text = page.run("$('help').innerText")
    check("the help explains the keys and the bodies", "secret:authorization" in text and "bodies of requests and responses" in text, text)
    page.run("[...$('help').querySelectorAll('button')].find(button => button.textContent === 'source:cache').click()")
    check("an example is entered by a click", page.run("$('help').hidden && shown.length === 1 && $('filter').value === 'source:cache'"))
    page.run("$('filter').value = ''; update(); $('helper').click()")
    page.run("$('helper').focus()")
    page.press("Escape")
    check("Escape closes the help", page.run("$('help').hidden"))
    check("the button Bodies explains itself", "bodies of requests and responses" in page.run("$('bodies').title"))


def instant(entry):
    """Returns the start of an entry of an archive in seconds."""
    return datetime.datetime.fromisoformat(entry["startedDateTime"].replace("Z", "+00:00")).timestamp()


def test_archive(check, page, downloads, end):
    """D17: after the end of the program, the page creates the archive."""
    page.run("fetch('archive').then(response => response.json()).then(archive => { window.served = archive; })")
    served = page.wait("window.served")
    page.wait("kept.size === rows.size")
    end()
    page.wait("$('live').className === 'live off'")
    path = os.path.join(downloads, "inspector.har")
    if os.path.exists(path):
        os.remove(path)
    page.run("$('archive').click()")
    archive = json.loads(views.downloaded(downloads, "inspector.har"))
    facts = [[[instant(entry), entry["request"]["method"], entry["request"]["url"], entry["request"]["headers"],
               entry["request"].get("postData", {}).get("text"), entry["response"]["status"], entry["response"]["headers"],
               entry["response"]["content"].get("text", "") if "image" not in entry["response"]["content"]["mimeType"] else "", entry["response"]["content"]["size"]] for entry in log["log"]["entries"]]
             for log in (archive, served)]
    different = [pair for pair in zip(*facts) if pair[0][1:] != pair[1][1:] or abs(pair[0][0] - pair[1][0]) > 0.01]
    check("the archive of an ended program has the same exchanges", len(facts[0]) == len(facts[1]) > 10 and different == [], different[:2])
    title = page.run("$('archive').title")
    check("the archive names its content", "for each exchange without a request" in title and "duration of the exchange" in title, title)
    for name, log in (("page", archive), ("program", served)):
        entries = log["log"]["entries"]
        hit = [entry for entry in entries if entry.get("_fromCache") == "cache"]
        check(f"the archive of the {name} has the response from the cache", len(hit) == 1 and "from the cache" in hit[0]["response"]["content"]["text"]
              and hit[0]["request"]["url"].endswith("/v1/cached") and abs(hit[0]["_exchangeDuration"] - hit[0]["time"]) < 0.001, hit)
        failed = [entry["response"] for entry in entries if entry.get("comment", "").startswith("decoding: ") and "_exchangeDuration" in entry]
        check(f"the archive of the {name} has the error of a decoding", len(failed) == 1 and ".name" in failed[0]["_error"]
              and "strong" in failed[0]["content"]["text"], failed)
        slow = [entry for entry in entries if entry["request"]["url"].endswith("/v1/annual-report")]
        check(f"the archive of the {name} has the duration of an exchange", slow[0]["_exchangeDuration"] >= slow[0]["time"] + 700, slow)
        stock = ["_exchangeDuration" in entry for entry in entries if entry["request"]["url"].endswith("/v1/stock")]
        check(f"the archive of the {name} has the result with the last attempt", stock == [False, True], stock)
    check("the archive of an ended program has no secret", "canary" not in json.dumps(archive))
    page.run("importArchive(" + json.dumps(json.dumps(archive)) + ")")
    check("the archive of an ended program can be imported", page.run("imported.size") == len(facts[0]) and page.run("$('message').hidden"),
          page.run("$('message').textContent"))
    hits = page.run("[...imported.values()].filter(({ summary }) => summary.source === 'cache').map(({ summary: { error, attempts, number } }) =>"
                    " [error ?? '', attempts, findInImported('from the cache').includes(number)])")
    check("an imported response from a cache is one", hits == [["", 0, True]], hits)
    page.run("removeImported(); kept.clear(); setLive($('live').textContent, 'off')")
    check("without details, the archive is disabled with its reason", page.run("$('archive').ariaDisabled") == "true"
          and "received no exchange" in page.run("$('archive').title"), page.run("$('archive').title"))
    page.run("$('archive').click()")
    check("a click names the reason", "no archive" in page.run("$('message').textContent"))


def test_reader(check, browser, start, downloads):
    """Tests a page with the exchanges of the command `questions`."""
    probe = start()
    page = browser.page(probe.url)
    page.wait("$('live').textContent === 'Live'")
    probe.run("questions")
    probe.run("phases")
    page.wait("[...rows.values()].some(row => row.path === '/second') && [...rows.values()].every(row => row.state === 'ended')")
    tests = [test_pieces, test_five_questions, test_chips, test_details, test_secrets, test_outer_rows, test_time, test_keys, test_narrow, test_empty, test_ticks, test_breaks,
             test_colors, test_attempts, test_jumps, test_filter]
    for test in tests:
        try:
            test(check, page)
        except (RuntimeError, TimeoutError, IndexError) as error:
            check(f"{test.__name__} ends", False, error)
            page.run("$('filter').value = ''; state = 'all'; update(); close()")
            page.resize(1280, 800)
    errors = page.errors()
    check("the page has no errors for a reader", errors == [], errors)
    test_archive(check, page, downloads, lambda: probe.run("stop"))
    probe.close()
    page.close()
