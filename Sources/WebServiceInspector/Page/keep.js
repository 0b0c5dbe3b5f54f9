// The details that the program has sent, as JSON, so that they can be read after its end.
const kept = new Map();  // by number, the oldest first
const mostKept = 32 << 20;  // characters
let keptSize = 0;
function forget(number) {
  keptSize -= kept.get(number)?.length ?? 0;
  kept.delete(number);
}
function keep(number, text) {
  forget(number);
  kept.set(number, text);
  keptSize += text.length;
  for (const oldest of kept.keys()) {
    if (keptSize <= mostKept || kept.size === 1) break;
    forget(oldest);
  }
}
function forgetUpTo(oldest) {
  for (const number of kept.keys()) if (number < oldest) forget(number);
}
// Returns the details of an exchange that has ended; `null` if they can change or were not sent.
function keptDetails(number, mayChange) {
  const details = kept.has(number) ? JSON.parse(kept.get(number)) : null;
  return mayChange || details?.summary.state === "ended" ? details : null;
}
// Returns the numbers of the exchanges whose details contain a text.
function findInKept(text) {
  const wanted = JSON.stringify(text.toLowerCase()).slice(1, -1);
  return [...kept].filter(([, details]) => details.toLowerCase().includes(wanted)).map(([number]) => number);
}
