// JSON and XML as indented text, in a time that is proportional to the length. The functions add to an
// element in steps, between which the page responds; see inPieces.
const deepest = 40, tokensPerStep = 400;
// In longer text, the elements of the outer containers are blocks, which the browser lays out alone
// and only while they are visible.
const shortText = 20000, deepestBlock = 3;
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
// Folds or unfolds all containers below the outermost one, and those that follow.
function foldAll(pre, folds) {
  pre.folds = folds;
  for (const element of [...pre.querySelectorAll("button.fold")].slice(1)) {
    element.nextElementSibling.classList.toggle("folded", folds);
    element.setAttribute("aria-expanded", String(!folds));
  }
}
// The place of a value that could not be decoded, as in "not of type String at .beers[0].name".
const wrongPlace = error => / at ((?:\.[^\s.[\]]+|\[\d+\])+)$/m.exec(error ?? "")?.[1];
// Formats JSON token by token, so that numbers and repeated keys remain as they were sent. The
// text of the result is the same whether containers are folded or not.
// - wrong: The path of a value to mark, such as ".beers[0].name".
function* formatJSON(text, root, placeholder, wrong) {
  const tokens = /"(?:[^"\\]|\\[\s\S])*"?|[{}\[\],:]|[^\s"{}\[\],:]+/g, parents = [root];
  const path = [];
  const isWrong = () => wrong !== undefined && depth <= deepest && path.slice(0, depth).join("") === wrong;
  let depth = 0, plain = "", after = "", count = 0, before = null, token = tokens.exec(text)?.[0];
  const flush = () => {
    if (plain) parents.at(-1).append(document.createTextNode(plain));
    plain = "";
  };
  const write = token => { plain += after + token; after = ""; };
  const isBlock = () => parents.at(-1).className === "block";
  const leaveBlock = () => {
    if (!isBlock()) return;
    plain += "\n";
    flush();
    parents.pop();
  };
  // Begins a line with an element of the current container.
  const beginElement = () => {
    after = newLine(depth);
    if (text.length <= shortText || depth > deepestBlock) return;
    if (isBlock()) leaveBlock(); else { plain += "\n"; flush(); }
    parents.push(el("span", "block"));
    parents.at(-2).append(parents.at(-1));
    after = after.slice(1);
  };
  while (token !== undefined) {
    const end = tokens.lastIndex, next = tokens.exec(text)?.[0];
    const isEmpty = next === "}" || next === "]";
    if (before === "[") path[depth - 1] = "[0]";
    switch (token) {
    case "{": case "[":
      write("");
      if (!isEmpty && depth < deepest) {
        flush();
        const container = el("span", isWrong() ? "container wrong" : "container"), fold = foldButton();
        parents.at(-1).append(fold, container);
        if (root.folds && depth) {
          container.classList.add("folded");
          fold.setAttribute("aria-expanded", "false");
        }
        write(token);
        parents.push(container);
        flush();
        parents.push(el("span", "content"));
        container.append(parents.at(-1));
      } else {
        write(token);
      }
      depth += 1;
      if (!isEmpty) beginElement();
      break;
    case "}": case "]": {
      const isPair = before === "{" || before === "[";
      const isFold = depth > 0 && depth <= deepest && !isPair && parents.length > 2;
      depth = Math.max(0, depth - 1);
      after = isPair ? "" : newLine(depth);
      if (!isPair && isBlock()) { leaveBlock(); after = after.slice(1); }
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
    case ",":
      if (path[depth - 1]?.startsWith("[")) path[depth - 1] = "[" + (parseInt(path[depth - 1].slice(1)) + 1) + "]";
      write(token);
      beginElement();
      break;
    case ":": write(": "); break;
    default: {
      write("");
      flush();
      const kind = !token.startsWith("\"") ? "number" : next === ":" ? "key" : "string";
      if (kind === "key" && depth) path[depth - 1] = "." + token.slice(1, -1).slice(0, 200);
      const value = el("span", kind !== "key" && isWrong() ? kind + " wrong" : kind);
      value.append(withMarks(token, placeholder));
      parents.at(-1).append(value);
      if (depth === 0) after = "\n";
    }
    }
    [before, token, count] = [token, next, count + 1];
    if (count % tokensPerStep === 0) {
      flush();
      yield end / text.length;
    }
  }
  flush();
}
// Yields comments, tags and the text between them.
function* xmlTokens(text) {
  const tag = /<(?:[^<>"']|"[^"]*"|'[^']*')*>/y;
  let at = 0;
  while (at < text.length) {
    let end = text.length;
    if (text[at] !== "<") {
      const next = text.indexOf("<", at);
      if (next > 0) end = next;
    } else {
      const closing = text.startsWith("<!--", at) ? "-->" : text.startsWith("<![CDATA[", at) ? "]]>" : null;
      const found = closing ? text.indexOf(closing, at) : -1;
      tag.lastIndex = at;
      // Text that is not closed is one token up to the end.
      if (found >= 0) end = found + closing.length;
      else if (!closing && tag.test(text)) end = tag.lastIndex;
    }
    const token = text.slice(at, end);
    at = end;
    if (token.trim()) yield [token, end];
  }
}
const isXML = body => /[/+]xml$/.test(body.type || "") || /^\s*<\?xml/.test(body.text.slice(0, 100));
function* formatXML(text, root) {
  const tokens = xmlTokens(text), ahead = [];
  const peek = index => {
    while (ahead.length <= index) ahead.push(tokens.next().value ?? [undefined]);
    return ahead[index][0];
  };
  const isText = token => token !== undefined && !token.startsWith("<");
  let depth = 0, isInline = false, before = "</", isFirst = true, count = 0;
  for (; peek(0) !== undefined; count += 1) {
    const [token, end] = ahead.shift(), next = peek(0), last = peek(1);
    const isClosing = token.startsWith("</"), isOther = /^<[!?]/.test(token) || isText(token);
    if (isClosing) depth = Math.max(0, depth - 1);
    if (!isFirst && !isInline) root.append(document.createTextNode(newLine(depth)));
    isFirst = isInline = false;
    if (isText(token)) {
      root.append(document.createTextNode(visible(token.trim())));
      isInline = (next || "").startsWith("</") && !/^<[!?/]/.test(before);
    } else {
      root.append(el("span", token.startsWith("<!--") ? "comment" : "key", token));
      if (!isClosing && !isOther && !token.endsWith("/>")) {
        depth += 1;
        isInline = isText(next) && (last || "").startsWith("</") || (next || "").startsWith("</");
      }
    }
    before = token;
    if (count % tokensPerStep === tokensPerStep - 1) yield end / text.length;
  }
}
const charactersPerStep = 64 << 10;
function* formatText(text, root, placeholder) {
  for (let at = 0, end; at < text.length; at = end) {
    end = Math.min(text.length, at + charactersPerStep);
    // A piece ends with a line, so that no placeholder is divided.
    const line = end < text.length ? text.lastIndexOf("\n", end) : -1;
    if (line > at) end = line + 1;
    const block = el("span", text.length > shortText ? "block" : "");
    block.append(withMarks(text.slice(at, end), placeholder));
    root.append(block);
    yield end / text.length;
  }
}
// Performs the steps of a generator that adds to an element: the first ones at once, the others while
// the element is shown, and after a number of them those that a button requests. Returns the notes
// that belong below the element.
function inPieces(element, steps, mostSteps) {
  const note = el("p", "note"), more = button("", "more", () => { most += mostSteps; run(); });
  let done = 0, most = mostSteps, share = "", part = 0;
  function run() {
    const end = performance.now() + (done ? 40 : 15);
    more.hidden = true;
    do {
      const { value, done: isOver } = steps.next();
      if (isOver) { note.remove(); if (element.isConnected) markFound(); return; }
      done += 1;
      part = value;
      share = Math.round(part * 100) + " %";
      // After the last part, only the end follows.
    } while (part >= 1 || performance.now() < end && done < most);
    const pauses = done >= most;
    note.textContent = pauses ? "" : "Formatting… " + share;
    more.textContent = "Show more (" + share + " are shown)";
    more.hidden = !pauses;
    if (!pauses) setTimeout(() => { if (element.isConnected) run(); }, 0);
  }
  run();
  return [note, more];
}
