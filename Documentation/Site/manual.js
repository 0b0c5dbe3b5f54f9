// Shows the Markdown file `page.md` beside the page: the subset of Markdown that the manual uses.
// Anchors are those of code hosts. Links to files of the repository lead to their pages on this site.
"use strict";

const escaped = (text) => text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
const anchorOf = (heading) => heading.replace(/[`*]/g, "").toLowerCase().replace(/[^\p{L}\p{N} -]/gu, "").replaceAll(" ", "-");

/** Returns the address on this site of a file of the repository, or `null` if it has no page. */
function addressOf(target) {
  if (/^(https?:|#)/.test(target)) return target;
  const [path, anchor] = target.replace(/^(\.\.?\/)+/, "").split("#");
  const article = /^Sources\/(\w+)\/\w+\.docc\/(?:\w+\/)*(\w+)\.(md|tutorial)$/.exec(path);
  if (article) {
    const [, module, name, kind] = article;
    const folder = kind === "tutorial" ? "tutorials/" : "documentation/";
    return baseUrl + (folder + module + (name === module ? "" : "/" + name)).toLowerCase() + "/";
  }
  const page = /^(?:Documentation\/)?([\w-]+)\.md$/.exec(path);
  return page ? "../" + page[1] + "/" + (anchor ? "#" + anchor : "") : null;
}

/** Returns the HTML of text with code spans, links, images and emphasis. */
function inline(text, definitions) {
  const spans = [];
  const keep = (html) => "\u0000" + (spans.push(html) - 1) + "\u0000";
  const link = (label, target) => {
    const address = addressOf(target);
    return address ? `<a href="${escaped(address)}">${label}</a>` : `<span title="${escaped(target)}">${label}</span>`;
  };
  text = text.replace(/(`+)([^]+?)\1/g, (_, ticks, code) => keep(`<code>${escaped(code.replaceAll("\\|", "|"))}</code>`));
  text = escaped(text)
    .replace(/!\[([^\]]*)\]\(([^)\s]+)\)/g, (_, alt, source) => {
      const [, name] = /([^/]+)$/.exec(source);
      const dark = name.endsWith(".png")
        ? `<source media="(prefers-color-scheme: dark)" srcset="${baseUrl}site/${name.replace(".png", "~dark.png")}">` : "";
      return keep(`<picture>${dark}<img src="${baseUrl}site/${name}" alt="${alt}"></picture>`);
    })
    .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, label, target) => link(label, target))
    .replace(/\[([^\]]+)\]\[([a-z-]+)\]/g, (all, label, name) => (name in definitions ? link(label, definitions[name]) : all))
    .replace(/\*\*([^]+?)\*\*/g, "<strong>$1</strong>")
    .replace(/(^|[^\w*])\*([^*]+)\*/g, "$1<em>$2</em>")
    .replace(/&lt;(https?:[^&]+)&gt;/g, '<a href="$1">$1</a>')
    .replace(/\\([|*_<>])/g, "$1");
  return text.replace(/\u0000(\d+)\u0000/g, (_, index) => spans[index]);
}

/** Returns the HTML of lines. */
function blocks(lines, definitions) {
  const html = [];
  const text = (part) => inline(part.join("\n"), definitions);
  const isBlock = (line) => /^(#{1,6} |```|\||[-*] |\d+\. |>)/.test(line);
  const cells = (row) => row.replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim(), definitions));
  let at = 0;
  const take = (condition) => {
    const start = at;
    while (at < lines.length && condition(lines[at], at - start)) at += 1;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    const item = /^([-*]|\d+\.) +/.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (heading) {
      const [, { length: level }, title] = heading;
      const anchor = anchorOf(title);
      html.push(`<h${level} id="${anchor}"><a class="anchor" href="#${anchor}">${inline(title, definitions)}</a></h${level}>`);
      at += 1;
    } else if (line.startsWith("```")) {
      at += 1;
      const code = take((other) => !other.startsWith("```"));
      html.push(`<pre><code class="${escaped(line.slice(3).trim())}">${escaped(code.join("\n"))}</code></pre>`);
      at += 1;
    } else if (line.startsWith("|")) {
      const [head, , ...rows] = take((other) => other.startsWith("|")).map(cells);
      const row = (name, values) => `<tr>${values.map((value) => `<${name}>${value}</${name}>`).join("")}</tr>`;
      html.push(`<table><thead>${row("th", head)}</thead><tbody>${rows.map((values) => row("td", values)).join("")}</tbody></table>`);
    } else if (item) {
      const name = /\d/.test(item[1]) ? "ol" : "ul";
      const items = [];
      const isItem = (other) => name === (/^\d+\. /.test(other) ? "ol" : /^[-*] /.test(other) ? "ul" : "");
      while (at < lines.length && isItem(lines[at])) {
        const indent = /^([-*]|\d+\.) +/.exec(lines[at])[0].length;
        const part = take((other, index) => index === 0 || /^ +\S/.test(other)
          || other.trim() === "" && /^ +\S/.test(lines[at + 1] ?? ""));
        const inner = blocks(part.map((other) => other.slice(Math.min(indent, Math.max(other.search(/\S/), 0)) || (other === part[0] ? indent : 0))), definitions);
        items.push(`<li>${inner.replace(/^<p>([^]*?)<\/p>/, "$1")}</li>`);
        while (lines[at]?.trim() === "" && isItem(lines[at + 1] ?? "")) at += 1;
      }
      html.push(`<${name}>${items.join("")}</${name}>`);
    } else if (line.startsWith(">")) {
      const quoted = take((other) => other.startsWith(">")).map((other) => other.replace(/^> ?/, ""));
      html.push(`<blockquote>${blocks(quoted, definitions)}</blockquote>`);
    } else {
      html.push(`<p>${text(take((other, index) => other.trim() !== "" && (index === 0 || !isBlock(other))))}</p>`);
    }
  }
  return html.join("\n");
}

async function show() {
  const article = document.querySelector("article");
  const response = await fetch("page.md");
  if (!response.ok) throw new Error("page.md: status " + response.status);
  const definitions = {};
  const source = (await response.text()).replace(/^\[([a-z-]+)\]: (\S+)$/gm, (_, name, target) => {
    definitions[name] = target;
    return "";
  });
  article.innerHTML = blocks(source.split("\n"), definitions);
  article.querySelectorAll("pre code.swift").forEach(site.highlight);
  document.title = article.querySelector("h1").textContent + " · WebService";
  // The pages with recipes have a heading of the first level for each group.
  const headings = [...article.querySelectorAll("h1, h2")].slice(1);
  const hasGroups = headings.some((heading) => heading.tagName === "H1");
  document.querySelector("nav ul").append(...headings.map((heading) =>
    site.el("li", { className: hasGroups && heading.tagName === "H2" ? "inner" : "" },
      site.el("a", { href: "#" + heading.id }, heading.textContent))));
  if (!matchMedia("(min-width: 1000px)").matches) document.querySelector("nav details").open = false;
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  document.body.dataset.shown = "true";
}

show().catch((error) => {
  document.querySelector("article").textContent = "This page cannot be loaded: " + error.message;
  throw error;
});
