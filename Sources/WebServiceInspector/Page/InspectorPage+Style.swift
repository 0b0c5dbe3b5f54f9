extension InspectorPage {
    static let style = #"""
        :root {
          --page: #f5f6f8; --card: #ffffff; --line: #e1e4ea; --line-strong: #c9ced8; --text: #1c2330; --dim: #5d6778;
          --accent: #2f6feb; --accent-soft: #e7effe; --hover: #f0f3f8; --ok: #146c34; --ok-soft: #def5e5;
          --move: #0a6475; --move-soft: #dbf3f6; --client: #974506; --client-soft: #fdf0d5; --bad: #b3231a;
          --bad-soft: #fde5e2; --idle: #5b6270; --idle-soft: #eceef2; --key: #7a3ea1; --string: #146c43;
          --number: #0b5cad; --wait: #c3cad6; --code: #f8f9fb;
          --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --page: #0f1319; --card: #161b23; --line: #262d38; --line-strong: #394252; --text: #e3e8f0; --dim: #97a2b4;
            --accent: #6ea1ff; --accent-soft: #1d2c47; --hover: #1c2330; --ok: #5fd38a; --ok-soft: #143222;
            --move: #5cc8da; --move-soft: #11313a; --client: #f0b35a; --client-soft: #3a2a10; --bad: #ff8a7d;
            --bad-soft: #45201d; --idle: #9aa4b5; --idle-soft: #262d38; --key: #c99bf0; --string: #7fd6a4;
            --number: #82b6ff; --wait: #465062; --code: #11161d;
          }
        }
        * { box-sizing: border-box; }
        [hidden] { display: none !important; }
        html, body { height: 100%; }
        body {
          margin: 0; display: flex; flex-direction: column; background: var(--page); color: var(--text);
          font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
          font-variant-numeric: tabular-nums;
        }
        button, .button, input {
          font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line-strong);
          border-radius: 6px; padding: 4px 10px; text-decoration: none; white-space: nowrap;
        }
        button, .button { cursor: pointer; }
        button:hover, .button:hover { background: var(--hover); }
        button[aria-pressed="true"] { background: var(--accent-soft); border-color: var(--accent); }
        :focus { outline: none; }
        :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
        .panel:focus-visible { outline-offset: -2px; }
        .list:focus-visible { outline: 1px solid var(--line-strong); outline-offset: -1px; }
        .list:focus-visible .row[aria-selected="true"] { outline: 2px solid var(--accent); outline-offset: -2px; }
        kbd {
          font: 11px/1 var(--mono); padding: 2px 5px; margin-right: 3px; border: 1px solid var(--line-strong);
          border-bottom-width: 2px; border-radius: 4px; color: var(--dim); background: var(--card);
        }
        .space { flex: 1; }
        .bar {
          display: flex; align-items: center; gap: 8px; padding: 8px 14px; background: var(--card);
          border-bottom: 1px solid var(--line);
        }
        h1 { font-size: 15px; font-weight: 650; margin: 0 6px 0 0; display: flex; align-items: center; gap: 8px; }
        .mark {
          width: 18px; height: 18px; border-radius: 5px;
          background: linear-gradient(180deg, transparent 3px, #fff 3px 5px, transparent 5px 8px, #fff 8px 10px,
            transparent 10px 13px, #fff 13px 15px, transparent 15px) 4px 0 / 10px 18px no-repeat, var(--accent);
        }
        @media (prefers-color-scheme: dark) { .mark { background-color: #2f6feb; } }
        .live { color: var(--dim); display: flex; align-items: center; gap: 6px; }
        .live::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--idle); }
        .live.on::before { background: var(--ok); box-shadow: 0 0 0 3px var(--ok-soft); }
        .live.off::before { background: var(--bad); box-shadow: 0 0 0 3px var(--bad-soft); }
        .tools { padding-top: 7px; padding-bottom: 7px; flex-wrap: wrap; }
        .search { position: relative; flex: 0 1 280px; min-width: 150px; }
        .search input { width: 100%; padding-right: 30px; }
        .search kbd { position: absolute; right: 5px; top: 6px; margin: 0; }
        .search input:focus + kbd, .search input:not(:placeholder-shown) + kbd { display: none; }
        .states { display: flex; gap: 2px; overflow-x: auto; scrollbar-width: none; }
        .states button { border-color: transparent; background: none; color: var(--dim); padding: 4px 9px; }
        .states button:hover { background: var(--hover); }
        .states button[aria-checked="true"] { background: var(--accent-soft); color: var(--accent); font-weight: 600; }
        .states b { font-weight: 400; font-size: 11px; margin-left: 5px; opacity: .75; }
        .count { color: var(--dim); }
        main { flex: 1; min-height: 0; display: flex; }
        .exchanges { flex: 1; min-width: 0; display: flex; flex-direction: column; background: var(--card); }
        .list { flex: 1; min-height: 0; overflow-y: auto; position: relative; contain: strict; }
        .listspace { position: absolute; width: 1px; top: 0; left: 0; visibility: hidden; }
        .row {
          display: grid; align-items: center; column-gap: 12px; padding: 0 14px; height: 34px;
          grid-template-columns: 52px 58px minmax(140px, 1fr) 84px 68px 68px minmax(90px, 22%);
        }
        .list .row { position: absolute; left: 0; right: 0; border-bottom: 1px solid var(--line); cursor: default; }
        .list .row:hover { background: var(--hover); }
        .list .row[aria-selected="true"] { background: var(--accent-soft); box-shadow: inset 3px 0 var(--accent); }
        .row.head {
          height: 28px; font-size: 11px; color: var(--dim); border-bottom: 1px solid var(--line); flex: none;
          font-weight: 600; background: var(--card);
        }
        .row > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
        .badge {
          font-weight: 650; font-size: 12px; border-radius: 5px; padding: 1px 0; text-align: center; color: var(--idle);
          background: var(--idle-soft);
        }
        .ok .badge, .badge.ok { color: var(--ok); background: var(--ok-soft); }
        .moved .badge, .badge.moved { color: var(--move); background: var(--move-soft); }
        .client .badge, .badge.client { color: var(--client); background: var(--client-soft); }
        .server .badge, .failed .badge, .badge.server, .badge.failed { color: var(--bad); background: var(--bad-soft); }
        .method { font: 600 12px var(--mono); color: var(--dim); }
        .head .method, .head .time, .head .size { font: inherit; }
        .url i { font-style: normal; color: var(--dim); margin-left: 8px; }
        .url em {
          font-style: normal; font-size: 11px; margin-left: 8px; padding: 0 5px; border-radius: 4px;
          color: var(--client); background: var(--client-soft);
        }
        .url em.cached { color: var(--move); background: var(--move-soft); }
        .type, .size, .time { color: var(--dim); }
        .size, .time { text-align: right; }
        .fall { position: relative; height: 100%; }
        .row.head .fall { height: auto; }
        .fall div { position: absolute; top: 50%; height: 8px; margin-top: -4px; min-width: 2px; border-radius: 2px; }
        .attempt, .fall .attempt { background: var(--accent); }
        .failed .fall .attempt, .server .fall .attempt { background: var(--bad); }
        .client .fall .attempt { background: var(--client); }
        .pause, .fall .pause { background: var(--wait); }
        .empty {
          margin: 0; padding: 48px 20px; text-align: center; color: var(--dim); position: absolute; left: 0;
          right: 0; top: 160px; pointer-events: none;
        }
        .detail {
          flex: 0 0 46%; min-width: 380px; max-width: 860px; display: flex; flex-direction: column;
          background: var(--card); border-left: 1px solid var(--line-strong);
        }
        .title { display: flex; gap: 10px; align-items: flex-start; padding: 10px 14px 8px; }
        .title h2 {
          flex: 1; margin: 3px 0 0; font-size: 13px; font-weight: 500; overflow-wrap: anywhere; max-height: 6em;
          overflow: auto;
        }
        .title h2 b { margin-right: 6px; font: 650 12px var(--mono); }
        .title .badge { display: inline-block; padding: 1px 7px; margin-right: 8px; }
        #back { padding: 4px 9px; } .narrow { display: none; }
        .tabs { display: flex; gap: 2px; padding: 0 10px; border-bottom: 1px solid var(--line); overflow-x: auto; }
        .tabs button {
          border: 0; border-radius: 0; background: none; padding: 6px 10px; color: var(--dim);
          border-bottom: 2px solid transparent;
        }
        .tabs button[aria-selected="true"] { color: var(--text); border-color: var(--accent); font-weight: 600; }
        .panel { flex: 1; min-height: 0; overflow: auto; padding: 14px; }
        .panel h3 {
          font-size: 11px; font-weight: 650; color: var(--dim); margin: 18px 0 6px; text-transform: uppercase;
          letter-spacing: .04em;
        }
        .panel > h3:first-child { margin-top: 0; }
        .fields {
          margin: 0; display: grid; grid-template-columns: minmax(90px, max-content) 1fr; column-gap: 14px;
          row-gap: 3px;
        }
        .fields dt { color: var(--dim); overflow-wrap: anywhere; max-width: 180px; }
        .fields dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; unicode-bidi: isolate; }
        .fields.mono dd, .fields.mono dt { font: 12px/1.5 var(--mono); }
        .redacted { color: var(--client); background: var(--client-soft); border-radius: 3px; padding: 0 3px; }
        pre {
          margin: 0; padding: 10px 12px; font: 12px/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere;
          background: var(--code); border: 1px solid var(--line); border-radius: 8px; tab-size: 2;
        }
        pre .key { color: var(--key); } pre .string { color: var(--string); } pre .number { color: var(--number); }
        .note { color: var(--dim); margin: 6px 0; }
        .error { color: var(--bad); }
        .picture {
          max-width: 100%; border-radius: 8px; border: 1px solid var(--line);
          background: repeating-conic-gradient(var(--line) 0 25%, transparent 0 50%) 0 0 / 16px 16px;
        }
        .chart {
          display: grid; grid-template-columns: max-content minmax(80px, 1fr) max-content; gap: 3px 12px;
          align-items: center;
        }
        .chart .label { color: var(--dim); }
        .chart .label.strong { color: var(--text); font-weight: 600; }
        .chart .label b { font-weight: 650; margin-left: 6px; }
        .chart b.ok { color: var(--ok); } .chart b.moved { color: var(--move); }
        .chart b.client { color: var(--client); } .chart b.server, .chart b.failed { color: var(--bad); }
        .chart .track {
          position: relative; height: 20px; border-left: 1px solid var(--line); border-right: 1px solid var(--line);
        }
        .chart .track div { position: absolute; top: 5px; height: 10px; border-radius: 2px; min-width: 2px; }
        .chart .track .failed { background: var(--bad); } .chart .track .other { background: var(--move); }
        .chart .value { text-align: right; color: var(--dim); }
        .chart .text { grid-column: 2 / -1; color: var(--dim); overflow-wrap: anywhere; }
        .phases { display: flex; flex-wrap: wrap; gap: 0 12px; font-size: 12px; padding-bottom: 3px; }
        .phases span { white-space: nowrap; }
        .phases span::before {
          content: ""; display: inline-block; width: 8px; height: 8px; border-radius: 2px; margin-right: 5px;
          background: var(--accent);
        }
        .track .lookup, .phases .lookup::before { background: #8b7ae6; }
        .track .connect, .phases .connect::before { background: #e39a3b; }
        .track .tls, .phases .tls::before { background: #d0679d; }
        .track .waiting, .phases .waiting::before { background: #3fa66b; }
        .track .receiving, .phases .receiving::before { background: #3b82e0; }
        .attempts { display: flex; gap: 4px; flex-wrap: wrap; margin-bottom: 12px; }
        .attempts button { padding: 2px 9px; }
        .keys {
          display: flex; gap: 16px; padding: 5px 14px; font-size: 11px; color: var(--dim); background: var(--card);
          border-top: 1px solid var(--line);
        }
        .toast {
          position: fixed; bottom: 44px; left: 50%; transform: translateX(-50%); padding: 7px 14px; border-radius: 8px;
          background: var(--text); color: var(--card); opacity: 0; transition: opacity .15s; pointer-events: none;
        }
        .toast.on { opacity: 1; }
        @media (prefers-reduced-motion: reduce) { .toast { transition: none; } }
        main.split .row { grid-template-columns: 52px 58px minmax(100px, 1fr) 68px 68px; }
        main.split .type, main.split .fall { display: none; }
        @media (min-width: 1440px) {
          main.split .row { grid-template-columns: 52px 58px minmax(100px, 1fr) 68px 68px minmax(90px, 20%); }
          main.split .fall { display: block; }
        }
        @media (max-width: 760px) {
          body { font-size: 14px; }
          .keys, .row.head, .search kbd, .tools .space { display: none; }
          .bar { padding: 7px 10px; gap: 6px; }
          h1 { margin-right: 2px; }
          button, .button, input { padding: 6px 9px; }
          .search { flex: 1 1 150px; }
          .states { order: 3; flex: 1 1 100%; }
          .states button { padding: 5px 8px; }
          .list .row, main.split .list .row {
            height: 58px; grid-template-columns: 50px auto minmax(0, 1fr) auto auto; column-gap: 8px;
            grid-template-rows: 30px 18px; align-content: center; padding: 0 10px;
          }
          .row .status { grid-row: 1; } .row .method { grid-row: 1; grid-column: 2; }
          .row .url { grid-row: 1; grid-column: 3 / -1; }
          .row .url i { display: none; }
          .row .type { display: none; }
          .row .time { grid-row: 2; grid-column: 5; } .row .size { grid-row: 2; grid-column: 4; }
          .row .fall, main.split .row .fall { display: block; grid-row: 2; grid-column: 1 / 4; height: 18px; }
          .detail { position: fixed; inset: 0; min-width: 0; max-width: none; border: 0; z-index: 2; }
          .narrow { display: inline; } .wide { display: none; }
          .fields { grid-template-columns: 1fr; row-gap: 0; }
          .fields dd { margin-bottom: 7px; }
        }
        """#
}
