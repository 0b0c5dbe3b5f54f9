"""Tests the inspector's page at its limits: 10,000 exchanges, large bodies, a program that floods, and accessibility."""
import os
import time

# The page scrolls with at least 50 frames per second; a filter takes at most 100 ms, and the memory is limited.
SCROLL = """new Promise(resolve => {
    const frames = [], start = performance.now();
    list.scrollTop = 0;
    const frame = now => {
        frames.push(now);
        list.scrollTop += 97;
        if (performance.now() - start < 1500) requestAnimationFrame(frame);
        else resolve((frames.length - 1) * 1000 / (frames.at(-1) - frames[0]));
    };
    requestAnimationFrame(frame);
})"""
FILTER = """(async () => {
    const times = [];
    for (const text of ['9', 'any/5 -55', 'status-code:200', '-method:post domain:example any/7', 'larger-than:1k', 'nothing', '']) {
        await new Promise(resolve => setTimeout(resolve, 30));
        $('filter').value = text;
        const start = performance.now();
        $('filter').dispatchEvent(new Event('input'));
        list.getBoundingClientRect();
        times.push(performance.now() - start);
    }
    return times;
})()"""


def memory(page):
    """Returns the megabytes of the page's heap, its elements and its buffers."""
    page.call("HeapProfiler.collectGarbage")
    usage = page.call("Runtime.getHeapUsage")
    return sum(usage.get(name, 0) for name in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")) / 1e6


def test_ten_thousand(check, browser, start):
    """A program floods the page with 10,000 exchanges."""
    probe = start("--many")
    page = browser.page(probe.url)
    page.wait("$('live').textContent === 'Live'")
    began = time.monotonic()
    probe.run("many 10000")
    sent = time.monotonic() - began
    page.wait("rows.size === 10000 && [...rows.values()].every(row => row.state === 'ended')", 300)
    print(f"10,000 exchanges: sent in {sent:.1f} s, listed after {time.monotonic() - began:.1f} s", flush=True)
    page.wait("kept.size === 10000", 300)
    print(f"all details after {time.monotonic() - began:.1f} s", flush=True)
    rate = page.measure(SCROLL, lambda rate: rate >= 50)
    print(f"10,000 exchanges scroll with {rate:.0f} frames per second", flush=True)
    check("10,000 exchanges scroll with 50 frames per second", rate >= 50, rate)
    times = page.measure(FILTER, lambda times: max(times) <= 100)
    print("filter of 10,000 exchanges: " + ", ".join(f"{ms:.0f} ms" for ms in times), flush=True)
    check("a filter of 10,000 exchanges takes at most 100 ms", max(times) <= 100, times)
    page.run("select(5000, true)")
    size = memory(page)
    print(f"page with 10,000 exchanges: {size:.0f} MB", flush=True)
    check("the page with 10,000 exchanges takes at most 150 MB", size <= 150, size)
    check("the page has few elements", page.run("document.querySelectorAll('*').length") < 2000)
    check("the page has no errors with 10,000 exchanges", page.errors() == [], page.errors())
    probe.close()
    page.close()


def test_large(check, browser, start):
    """Bodies of 100 MB, of which the inspector retains the first part, and all that the program permits."""
    probe = start("--large")
    page = browser.page(probe.url)
    page.wait("$('live').textContent === 'Live'")
    probe.run("large 100")
    page.wait("[...rows.values()].some(row => row.state === 'ended')", 300)
    page.run("select(1, true); choose('response')")
    page.wait("detail && !isLoading && $('panel').querySelector('pre') !== null", 300)
    text = page.run("$('panel').textContent.slice(-200)")
    check("a body of 100 MB is shown in part", "of 100000000 bytes" in text and "Show more" in text, text)
    size = memory(page)
    print(f"page with a body of 100 MB, of which 4 MB are retained: {size:.0f} MB", flush=True)
    check("the page with a body of 100 MB takes at most 150 MB", size <= 150, size)
    check("the page with a body of 100 MB has no errors", page.errors() == [], page.errors())
    probe.close()
    page.close()


def test_kept(check, page):
    """The details that the page retains are limited, the oldest are dropped first."""
    found = page.run("""(() => {
        const before = [...kept], part = "x".repeat(mostKept / 8);
        kept.clear();
        keptSize = 0;
        for (let number = 1; number <= 12; number += 1) keep(number, part + number);
        const numbers = [...kept.keys()], size = keptSize;
        keep(13, "x".repeat(mostKept * 2));
        const last = [...kept.keys()];
        kept.clear();
        keptSize = 0;
        for (const [number, text] of before) keep(number, text);
        return [numbers, size <= mostKept, last];
    })()""")
    check("the oldest details are dropped first", found == [list(range(6, 13)), True, [13]], found)


def violations(page, script):
    page.run(script + "; 1")
    return page.run("""axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
        .then(({ violations, passes }) => [violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 4)
            .map(({ html, any }) => html.slice(0, 160) + ' ' + (any[0]?.message ?? '')).join(' | ')), passes.length])""")


def test_accessibility(check, page, open_row):
    """Checks every state of the page with axe-core."""
    path = os.environ.get("WEBSERVICE_AXE")
    if not path:
        print("WEBSERVICE_AXE is not set, so the page is not checked with axe-core.", flush=True)
        return
    with open(path, encoding="utf-8") as file:
        script = file.read()
    count = 0
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        for width in (1280, 400):
            page.resize(width, 800)
            page.run("close()")
            states = [("the list", lambda: None), ("the help of the filter", lambda: page.run("setHelp(true)"))]
            for part in ("overview", "request", "response", "code", "send"):
                states.append((part, lambda part=part: open_row(page, "/v1/kind/multipart", part)))
            for row in ("/v1/kind/refused", "/v1/kind/hedged", "/v1/kind/socket", "/v1/kind/events", "/v1/kind/broken",
                        "/v1/kind/download", "/v1/label", "/v1/specials?limit=3"):
                for part in ("overview", "response"):
                    states.append((f"{part} of {row}", lambda row=row, part=part: open_row(page, row, part)))
            states.append(("the overview of an attempt", lambda: (open_row(page, "/v1/specials?limit=3", "overview"), page.run("attempt = 0; show()"))))
            for name, show in states:
                show()
                found, passes = violations(page, script if count == 0 else "")
                count += 1
                check(f"{name} is accessible ({scheme}, {width} pixels)", found == [] and passes > 8, found)
                page.run("setHelp(false)")
    print(f"axe-core: {count} states of the page", flush=True)
    page.scheme("light")
    page.resize(1280, 800)
    page.run("close()")
