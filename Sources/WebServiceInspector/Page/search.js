// The search in bodies, which the program performs: the page has only the bodies that it shows.
let bodyMatches = null, searchTimer = 0, isSearching = false, searchAgain = false;
const searchesBodies = () => $("bodies").getAttribute("aria-pressed") === "true";
const bodyText = () => searchesBodies() ? $("filter").value.trim() : "";
// Searches the bodies again, at most one request at a time.
function findInBodies(delay = 300) {
  if (!bodyText()) { bodyMatches = null; return; }
  if (!searchTimer) searchTimer = setTimeout(() => { searchTimer = 0; searchBodies(); }, delay);
}
async function searchBodies() {
  if (isSearching) { searchAgain = true; return; }
  isSearching = true;
  do {
    searchAgain = false;
    const text = bodyText();
    if (!text) { bodyMatches = null; break; }
    try {
      const response = await fetch("search?text=" + encodeURIComponent(text));
      const found = response.ok ? (await response.json()).numbers : [];
      if (text === bodyText()) bodyMatches = new Set([...found, ...findInImported(text)]);
      else searchAgain = true;
    } catch {
      bodyMatches = new Set([...findInKept(text), ...findInImported(text)]);
    }
  } while (searchAgain);
  isSearching = false;
  update();
  markFound();
}
// Highlights the text in the details without changing their elements.
const mostMarks = 1000;
function markFound() {
  if (!CSS.highlights) return;
  CSS.highlights.delete("found");
  const text = bodyText().toLowerCase();
  if (!text || !bodyMatches) return;
  const ranges = [], walker = document.createTreeWalker($("panel"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < mostMarks) {
    const node = walker.currentNode, content = node.data.toLowerCase();
    if (content.length !== node.data.length) continue;  // some letters have other lengths in lower case
    for (let at = content.indexOf(text); at >= 0 && ranges.length < mostMarks; at = content.indexOf(text, at + 1)) {
      const found = new Range();
      found.setStart(node, at);
      found.setEnd(node, at + text.length);
      ranges.push(found);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
$("bodies").addEventListener("click", () => {
  $("bodies").setAttribute("aria-pressed", String(!searchesBodies()));
  showPlaceholder();
  bodyMatches = null;
  update();
  findInBodies(0);
  markFound();
});
$("filter").addEventListener("input", () => {
  bodyMatches = null;
  update();
  findInBodies();
});
// The placeholder of the filter has as many examples as there is space for.
function showPlaceholder() {
  const searches = searchesBodies(), text = isNarrow() ? "such as status:503" : searches
    ? "Filter, also in the text of bodies" : "Filter, such as source:cache, status:503, duration:>1s";
  $("filter").placeholder = isNarrow() && searches ? "also in bodies" : text;
}
matchMedia("(max-width: 760px)").addEventListener("change", showPlaceholder);
showPlaceholder();
