/// The page of the inspector: one HTML document without external resources.
///
/// It receives data only as JSON and shows it only as text nodes, so that no exchange can add
/// markup or code.
enum InspectorPage {
    /// Returns the document.
    ///
    /// - Parameter nonce: The nonce of the style sheet and the script in the content security
    ///   policy.
    static func document(nonce: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Inspector</title>
        <link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'%3E\
        %3Crect width='18' height='18' rx='5' fill='%232f6feb'/%3E%3Cpath d='M4 4h10M4 9h10M4 14h10' stroke='white' \
        stroke-width='2'/%3E%3C/svg%3E">
        <style nonce="\(nonce)">
        \(style)
        </style>
        </head>
        <body>
        \(body)
        <script nonce="\(nonce)">
        "use strict";
        \(formatScript)
        \(listScript)
        \(detailScript)
        \(connectionScript)
        </script>
        </body>
        </html>

        """
    }

    private static let body = #"""
        <header class="bar">
          <h1><span class="mark" aria-hidden="true"></span>Inspector</h1>
          <span id="live" class="live" role="status">Connecting</span>
          <span class="space"></span>
          <button id="pause" type="button" aria-pressed="false">Pause</button>
          <button id="clear" type="button" title="Hide the exchanges shown so far">Clear</button>
          <a id="archive" class="button" href="archive" download="inspector.har"
            title="Download all exchanges as an HTTP archive (HAR 1.2)">Archive</a>
        </header>
        <div class="bar tools">
          <div class="search">
            <input id="filter" type="search" placeholder="Filter" aria-label="Filter exchanges"
              autocomplete="off" spellcheck="false" autocapitalize="off">
            <kbd aria-hidden="true">/</kbd>
          </div>
          <div id="states" class="states" role="radiogroup" aria-label="Result"></div>
          <span class="space"></span>
          <output id="count" class="count" for="filter"></output>
        </div>
        <main id="main">
          <section class="exchanges" aria-label="Exchanges">
            <div id="head" class="row head" aria-hidden="true">
              <span class="status">Status</span><span class="method">Method</span><span class="url">Request</span>
              <span class="type">Type</span><span class="size">Size</span><span class="time">Time</span>
              <span class="fall">Waterfall</span>
            </div>
            <div id="list" class="list" role="listbox" tabindex="0" aria-label="Exchanges">
              <div id="space" class="listspace" role="presentation"></div>
            </div>
            <p id="empty" class="empty"></p>
          </section>
          <section id="detail" class="detail" aria-label="Details" hidden>
            <div class="title">
              <button id="back" type="button" aria-label="Close the details">
                <span class="wide" aria-hidden="true">×</span><span class="narrow">‹ List</span>
              </button>
              <h2 id="title" tabindex="-1"></h2>
              <button id="copy" type="button" title="Copy as cURL (c)">Copy as cURL</button>
            </div>
            <div id="tabs" class="tabs" role="tablist" aria-label="Details"></div>
            <div id="panel" class="panel" role="tabpanel" tabindex="0"></div>
          </section>
        </main>
        <footer class="keys" aria-hidden="true">
          <span><kbd>/</kbd> filter</span><span><kbd>↑</kbd><kbd>↓</kbd> select</span>
          <span><kbd>↵</kbd> details</span><span><kbd>←</kbd><kbd>→</kbd> tabs</span>
          <span><kbd>c</kbd> copy as cURL</span><span><kbd>esc</kbd> close</span>
          <span class="space"></span><span>Secrets are redacted.</span>
        </footer>
        <div id="toast" class="toast" role="status"></div>
        """#
}
