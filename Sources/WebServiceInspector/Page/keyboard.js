// The keyboard, and the width of the details.
$("back").addEventListener("click", close);
$("filter").addEventListener("keydown", event => {
  if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); list.focus(); move(0); }
  if (event.key === "Escape") {
    event.stopPropagation();
    $("filter").value = "";
    bodyMatches = null;
    update();
    list.focus();
  }
});
const page = () => Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
// The arrows open and close an exchange in the list.
function unfold(opens) {
  if (!opens && opened.has(selected)) attempt = -1;
  if (selected !== null) toggle(selected, opens);
}
const pageKeys = {
  "/": () => { $("filter").focus(); $("filter").select(); }, c: () => copyCode("curl"), s: () => copyCode("swift"),
};
const listKeys = {
  ArrowRight: () => unfold(true), ArrowLeft: () => unfold(false), "+": () => zoomBy(0.5), "-": () => zoomBy(2),
  0: () => setZoom(null), "<": () => pan(-0.25), ">": () => pan(0.25),
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1),
  PageDown: () => move(page()), PageUp: () => move(-page()),
  Home: () => move(-Infinity), End: () => move(Infinity),
  Enter: () => { if (selected !== null) { select(selected, true); $("title").focus(); } },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea, .divider")) return;
  const inList = event.target === list || event.target === document.body;
  const inDetail = $("detail").contains(event.target);
  let action = pageKeys[event.key] ?? (inList ? listKeys[event.key] : null);
  if (event.key === "Escape" && !$("detail").hidden) action = close;
  const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
  if (isSideways && (inDetail || inList) && !$("detail").hidden) {
    const index = tabs.findIndex(([id]) => id === tab) + (event.key === "ArrowRight" ? 1 : -1);
    action = () => {
      choose(tabs[(index + tabs.length) % tabs.length].at(0));
      if (inDetail && event.target.getAttribute("role") === "tab") $("tab-" + tab).focus();
    };
  }
  if (action) { event.preventDefault(); action(); }
});
// The width of the details, in percent of the window; the rest is that of the list.
function setWidth(percent) {
  const width = Math.round(Math.min(Math.max(percent, 20), 80));
  $("detail").style.flexBasis = width + "%";
  $("divider").setAttribute("aria-valuenow", width);
}
$("divider").addEventListener("pointerdown", event => $("divider").setPointerCapture(event.pointerId));
$("divider").addEventListener("pointermove", event => {
  if ($("divider").hasPointerCapture(event.pointerId)) setWidth(100 - event.clientX / innerWidth * 100);
});
$("divider").addEventListener("keydown", event => {
  const step = { ArrowLeft: 2, ArrowRight: -2 }[event.key];
  if (!step) return;
  event.preventDefault();
  setWidth(Number($("divider").getAttribute("aria-valuenow")) + step);
});
setWidth(46);
