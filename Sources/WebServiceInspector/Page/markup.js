// JSON and XML as indented text, in a time that is proportional to the length.
const longestFormatted = 300000, mostTokens = 30000, deepest = 40;
// Deeper levels remain on one line, because their indentation would be quadratic.
const newLine = depth => depth > deepest ? "" : "\n" + "  ".repeat(depth);
function foldButton() {
  const element = button("", "fold", () => {
    const isFolded = element.nextElementSibling.classList.toggle("folded");
    element.setAttribute("aria-expanded", String(!isFolded));
  });
  element.setAttribute("aria-label", "Fold");
  element.setAttribute("aria-expanded", "true");
  return element;
}
// Folds or unfolds all containers below the outermost one.
function foldAll(pre, folds) {
  for (const element of [...pre.querySelectorAll("button.fold")].slice(1)) {
    element.nextElementSibling.classList.toggle("folded", folds);
    element.setAttribute("aria-expanded", String(!folds));
  }
}
// Formats JSON token by token, so that numbers and repeated keys remain as they were sent. The
// text of the result is the same whether containers are folded or not.
function formatJSON(text) {
  const fragment = document.createDocumentFragment();
  const tokens = /"(?:[^"\\]|\\[\s\S])*"?|[{}\[\],:]|[^\s"{}\[\],:]+/g;
  const list = text.length <= longestFormatted && text.match(tokens) || [];
  if (!list.length || list.length > mostTokens) return document.createTextNode(visible(text));
  const parents = [fragment];
  let depth = 0, plain = "", after = "";
  const flush = () => {
    if (plain) parents.at(-1).append(document.createTextNode(plain));
    plain = "";
  };
  const write = token => { plain += after + token; after = ""; };
  list.forEach((token, index) => {
    const isEmpty = list[index + 1] === "}" || list[index + 1] === "]";
    switch (token) {
    case "{": case "[":
      write("");
      if (!isEmpty && depth < deepest) {
        flush();
        const container = el("span", "container");
        parents.at(-1).append(foldButton(), container);
        write(token);
        parents.push(container);
        flush();
        parents.push(el("span", "content"));
        container.append(parents.at(-1));
      } else {
        write(token);
      }
      depth += 1;
      if (!isEmpty) after = newLine(depth);
      break;
    case "}": case "]": {
      const before = list[index - 1], isPair = before === "{" || before === "[";
      const isFold = depth > 0 && depth <= deepest && !isPair && parents.length > 2;
      depth = Math.max(0, depth - 1);
      after = isPair ? "" : newLine(depth);
      if (isFold) {
        write("");
        flush();
        parents.pop();
      }
      write(token);
      if (isFold) {
        flush();
        parents.pop();
      }
      if (depth === 0) after = "\n";
      break;
    }
    case ",": write(token); after = newLine(depth); break;
    case ":": write(": "); break;
    default: {
      write("");
      flush();
      const kind = !token.startsWith("\"") ? "number" : list[index + 1] === ":" ? "key" : "string";
      parents.at(-1).append(el("span", kind, token));
      if (depth === 0) after = "\n";
    }
    }
  });
  flush();
  return fragment;
}
// Returns comments, tags and the text between them; `null` if there are too many.
function xmlTokens(text) {
  const tag = /<(?:[^<>"']|"[^"]*"|'[^']*')*>/y, tokens = [];
  let at = 0;
  while (at < text.length) {
    if (tokens.length > mostTokens) return null;
    let end = text.length;
    if (text[at] !== "<") {
      const next = text.indexOf("<", at);
      if (next > 0) end = next;
    } else {
      const closing = text.startsWith("<!--", at) ? "-->" : text.startsWith("<![CDATA[", at) ? "]]>" : null;
      tag.lastIndex = at;
      // Text that is not closed is one token up to the end.
      if (closing && text.includes(closing, at)) end = text.indexOf(closing, at) + closing.length;
      else if (!closing && tag.test(text)) end = tag.lastIndex;
    }
    tokens.push(text.slice(at, end));
    at = end;
  }
  return tokens;
}
const isXML = body => /[/+]xml$/.test(body.type || "") || /^\s*<\?xml/.test(body.text.slice(0, 100));
function formatXML(text) {
  const fragment = document.createDocumentFragment();
  const all = text.length <= longestFormatted && xmlTokens(text);
  if (!all) return document.createTextNode(visible(text));
  const list = all.filter(token => token.trim());
  const isText = token => token !== undefined && !token.startsWith("<");
  let depth = 0, isInline = false;
  list.forEach((token, index) => {
    const isClosing = token.startsWith("</"), isOther = /^<[!?]/.test(token) || isText(token);
    if (isClosing) depth = Math.max(0, depth - 1);
    if (index && !isInline) fragment.append(document.createTextNode(newLine(depth)));
    isInline = false;
    if (isText(token)) {
      fragment.append(document.createTextNode(visible(token.trim())));
      isInline = (list[index + 1] || "").startsWith("</") && !/^<[!?/]/.test(list[index - 1] || "</");
      return;
    }
    fragment.append(el("span", token.startsWith("<!--") ? "comment" : "key", token));
    if (isClosing || isOther || token.endsWith("/>")) return;
    depth += 1;
    const next = list[index + 1], last = list[index + 2];
    isInline = isText(next) && (last || "").startsWith("</") || (next || "").startsWith("</");
  });
  return fragment;
}
