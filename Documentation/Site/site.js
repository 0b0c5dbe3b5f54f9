// The header of every page: the way home, the manual, the modules, and the search over all modules.
// DocC shows an element `custom-header` above each page if it is defined, and retains it while its
// own links load other pages. The landing page and the manual contain the element.
"use strict";

const site = {
  root: typeof baseUrl === "string" ? baseUrl : "/",
  index: null,

  /** Creates an element with properties and children. */
  el(name, properties, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  },

  // MARK: Search

  /** What kinds of pages add to the score of a result. */
  ranks: [
    [/^(Article|Module)$/, 12], [/^(Guide|Cookbook)$/, 8], [/^(Class|Structure|Protocol|Enumeration)$/, 4],
    [/Case|Type Property/, -25], [/Instance Property/, -12], [/^[A-Z][a-z]+ing|^[A-Z]+$/, -15],
  ],

  /** Loads the index once: an array of `[title, path, kind, summary, place]`. */
  entries() {
    site.index ??= fetch(site.root + "site/search.json").then((response) => response.json()).then((entries) =>
      entries.map(([title, path, kind, summary, place]) => {
        const name = title.split(/[(<:]/)[0].replace(/^WebService(?=\w)/, "");
        const words = (title.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) ?? []).map((word) => word.toLowerCase());
        return { title, path, kind, summary, place, words, name: name.toLowerCase(), lower: title.toLowerCase(),
          text: summary.toLowerCase(), depth: path.split("/").length, rank: (site.ranks.find(([kinds]) => kinds.test(kind)) ?? [, 0])[1] };
      }));
    return site.index;
  },

  /** Returns how well an entry matches one word of a query; 0 if it does not. */
  score(entry, word) {
    const stem = word.length > 4 ? word.replace(/(ing|es|s)$/, "") : word;
    if (entry.name === word) return 100;
    if (entry.lower === word) return 100;
    // The title of an article or a chapter names a task, which precedes the members of that name.
    if (/^(Article|Guide)$/.test(entry.kind) && entry.words.some((other) => other.startsWith(stem))) return 95;
    if (entry.name === stem) return 80;
    if (entry.words.includes(word)) return 70;
    if (entry.name.startsWith(word)) return 60;
    if (entry.words.some((other) => other.startsWith(stem))) return 50;
    if (entry.lower.includes(word)) return 30;
    return entry.text.includes(stem) ? 10 : 0;
  },

  /** Returns the best entries of a query: types and modules of that name, then articles, then members. */
  find(entries, query) {
    const words = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
    if (words.length === 0) return [];
    const found = [];
    for (const entry of entries) {
      let total = entry.lower === query.toLowerCase() ? 10 : 0;
      for (const word of words) {
        const score = site.score(entry, word);
        if (score === 0) { total = 0; break; }
        total += score;
      }
      if (total > 0) {
        found.push([total / words.length + entry.rank - 3 * entry.depth - entry.title.length / 50, entry]);
      }
    }
    return found.sort((a, b) => b[0] - a[0]).slice(0, 30).map(([, entry]) => entry);
  },

  /** Opens the search. The first call creates it. */
  async openSearch() {
    if (site.dialog) {
      site.dialog.showModal();
      site.input.select();
      return;
    }
    const { el } = site;
    const status = el("p", { role: "status" });
    const list = el("ul", { id: "site-results", role: "listbox", ariaLabel: "Results" });
    const input = el("input", {
      type: "text", role: "combobox", placeholder: "Search types, methods, articles and recipes", autocomplete: "off",
      spellcheck: false, ariaLabel: "Search all modules", ariaExpanded: "true",
    });
    input.setAttribute("aria-controls", "site-results");
    const dialog = el("dialog", { className: "site-search", ariaLabel: "Search" }, input, status, list);
    Object.assign(site, { dialog, input });
    document.body.append(dialog);

    let selected = 0;
    function select(index) {
      const items = list.children;
      items[selected]?.setAttribute("aria-selected", "false");
      selected = Math.max(0, Math.min(index, items.length - 1));
      items[selected]?.setAttribute("aria-selected", "true");
      items[selected]?.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", items[selected]?.id ?? "");
    }
    async function show() {
      try {
        const found = site.find(await site.entries(), input.value);
        list.replaceChildren(...found.map((entry, index) => {
          return el("li", { id: "site-result-" + index, role: "option", ariaSelected: "false" },
            el("a", { href: site.root + entry.path, tabIndex: -1 }, el("b", {}, entry.title), " ",
              el("small", {}, [entry.kind, entry.place].filter(Boolean).join(" · ")), el("span", {}, entry.summary)));
        }));
        status.textContent = found.length > 0 ? "" : input.value.trim()
          ? "No symbol, article or recipe contains these words." : "Arrow keys select, Return opens, Escape closes.";
        status.hidden = found.length > 0;
        select(0);
      } catch (error) {
        site.index = null;
        status.hidden = false;
        status.textContent = "The index cannot be loaded: " + error.message;
      }
    }
    input.addEventListener("input", show);
    input.addEventListener("keydown", (event) => {
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
      if (event.key in steps) select(selected + steps[event.key]);
      else if (event.key === "Enter") list.children[selected]?.firstChild.click();
      else return;
      event.preventDefault();
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("a")) dialog.close();
    });
    dialog.showModal();
    input.focus();
    await show();
  },

  // MARK: Modules

  /** Fills the menu when it is opened for the first time. */
  async fillModules(menu) {
    if (menu.childElementCount > 0) return;
    const entries = (await site.entries()).filter((entry) => entry.kind === "Module");
    menu.replaceChildren(...entries.sort((a, b) => (a.title < b.title ? -1 : 1)).map((entry) =>
      site.el("a", { href: site.root + entry.path }, entry.title, site.el("small", {}, entry.summary))));
  },
};

customElements.define("custom-header", class extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount > 0) return;
    const { el, root } = site;
    const menu = el("div", { className: "site-modules" });
    const modules = el("details", {}, el("summary", {}, "Modules"), menu);
    modules.addEventListener("toggle", () => modules.open && site.fillModules(menu));
    document.addEventListener("click", (event) => { if (!modules.contains(event.target)) modules.open = false; });
    modules.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { modules.open = false; modules.firstChild.focus(); }
    });
    const search = el("button", { type: "button", className: "site-open", ariaLabel: "Search all modules" },
      "Search", el("kbd", {}, "/"));
    search.addEventListener("click", site.openSearch);
    this.setAttribute("role", "banner");
    this.append(
      el("a", { href: root, className: "site-home" }, "WebService"), el("a", { href: root + "manual/Guide/" }, "Guide"),
      el("a", { href: root + "manual/Cookbook/" }, "Cookbook"), modules, search);
  }
});

// Before the handler of DocC, whose quick navigation searches one module.
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  site.openSearch();
}, true);

// The choice of the switch of DocC also applies to the pages without the switch.
addEventListener("DOMContentLoaded", () => {
  if (!document.body.classList.contains("site")) return;
  try {
    const choice = localStorage.getItem("developer.setting.preferredColorScheme");
    if (choice) document.body.dataset.colorScheme = choice;
  } catch { /* Without storage, the scheme of the system applies. */ }
  document.querySelectorAll("pre code.swift").forEach(site.highlight);
});

/** Marks comments, strings, keywords and types of Swift. */
site.highlight = (code) => {
  const keywords = "actor as async await break case catch class do else enum extension false final for func guard if "
    + "import in init is let nil private public return self static struct switch throw throws true try var where while";
  const pattern = new RegExp(
    String.raw`(\/\/.*)|("""[\s\S]*?"""|"(?:\\.|[^"\\\n])*")|\b(${keywords.replaceAll(" ", "|")})\b|(@?\b[A-Z]\w*)`, "g");
  const text = code.textContent;
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const kind = ["comment", "string", "keyword", "type"][match.slice(1).findIndex((group) => group !== undefined)];
    nodes.push(text.slice(end, match.index), site.el("span", { className: kind }, match[0]));
    end = match.index + match[0].length;
  }
  code.replaceChildren(...nodes, text.slice(end));
};
