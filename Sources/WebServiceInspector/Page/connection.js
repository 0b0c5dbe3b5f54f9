// The connection to the program.
let position = "", oldest = 1, source = null, frame = 0, hasEnded = false;
function setLive(text, className) {
  if (text === "Live" || text === ended) hasEnded = text === ended;
  showArchive();
  $("live").textContent = text;
  $("live").className = "live " + className;
}
function schedule() {
  if (!frame) frame = requestAnimationFrame(() => { frame = 0; update(true); });
}
function receive(event) {
  const message = JSON.parse(event.data);
  position = event.lastEventId;
  isLoaded = true;
  oldest = message.oldest;
  removeUpTo(oldest);
  forgetUpTo(oldest);
  for (const row of message.exchanges) add(row);
  if (message.exchanges.some(row => isShown(row.number) && row.state !== "ended")) reload();
  const sent = awaited && message.exchanges.find(awaited);
  if (sent) { awaited = null; tab = "overview"; select(sent.number, true); }
  findInBodies();
  schedule();
}
// The first line is the number of the exchange.
function receiveDetails(event) {
  const end = event.data.indexOf("\n"), number = Number(event.data.slice(0, end));
  position = event.lastEventId;
  if (number < oldest) return;
  keep(number, event.data.slice(end + 1));
  if (isShown(number)) load();
}
const isShown = number => number === selected && !$("detail").hidden;
// Loads the details of an exchange in progress at most four times per second.
let reloadTimer = 0;
function reload() {
  if (!reloadTimer) reloadTimer = setTimeout(() => { reloadTimer = 0; load(); }, 250);
}
const ended = "The program has ended";
function connect() {
  source = new EventSource("events?after=" + position);
  source.onopen = () => setLive("Live", "on");
  source.onmessage = receive;
  source.addEventListener("details", receiveDetails);
  // Closing the connection lets the program end.
  source.addEventListener("end", () => { source.close(); setLive(ended, "off"); });
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) { setLive(ended, "off"); return; }
    if ($("live").textContent !== ended) setLive("Reconnecting", "off");
    examine(source);
  };
}
// A browser reconnects for as long as the page is open, also to a program that was killed.
async function examine(broken) {
  try {
    await fetch("", { cache: "no-store" });
  } catch {
    if (broken === source && source.readyState !== EventSource.OPEN) setLive(ended, "off");
  }
}
// A reload does not show the exchanges again that were hidden.
const hiddenKey = "hidden" + location.pathname;
function hide(number) {
  hiddenUpTo = number;
  try { sessionStorage.setItem(hiddenKey, number); } catch { /* storage can be disabled */ }
}
try { hiddenUpTo = Number(sessionStorage.getItem(hiddenKey)) || 0; } catch { /* see above */ }
$("pause").addEventListener("click", () => {
  const pauses = $("pause").getAttribute("aria-pressed") !== "true";
  $("pause").setAttribute("aria-pressed", String(pauses));
  source.close();
  if (pauses) setLive("Paused", ""); else connect();
});
$("clear").addEventListener("click", () => {
  hide([...rows.keys()].reduce((last, number) => Math.max(last, number), hiddenUpTo));
  removeImported();
  selected = null;
  showDetail(false);
  update();
});
// An error of the page is visible to who looks at it.
addEventListener("error", event => tell("The page has an error: " + event.message));
addEventListener("unhandledrejection", event => tell("The page has an error: " + event.reason));
// The duration of exchanges in progress.
setInterval(() => { if (shown.some(row => row.duration === undefined)) schedule(); }, 250);
update();
connect();
list.focus();
