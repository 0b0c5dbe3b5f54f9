// The help of the filter: its keys, each with an example that a click enters.
const examples = [
  ["timeout", "a word in the URL, the name, the status or the error; -word excludes it"],
  ["source:cache", "responses from a cache; also source:network, source:storage"],
  ["status:503", "a status of an attempt; also status:5xx"],
  ["duration:>1s", "longer than a second; also duration:<20ms"],
  ["size:>10k", "larger bodies"],
  ["secret:authorization", "sent this secret; also secret:*body, is:secret"],
  ["is:retried", "also is:failed, is:cached, is:redirected, is:cancelled, is:running"],
  ["method:POST", "also domain:, scheme:, url:, mime-type:"],
];
function setHelp(isShown) {
  $("help").hidden = !isShown;
  $("helper").setAttribute("aria-expanded", String(isShown));
}
$("help").append(
  el("h2", "", "What the filter finds"),
  el("dl", "", ...examples.flatMap(([text, meaning]) => [
    el("dt", "", button(text, "link", () => {
      $("filter").value = text;
      $("filter").dispatchEvent(new Event("input"));
      setHelp(false);
      $("filter").focus();
    })),
    el("dd", "", meaning),
  ])),
  el("p", "note", "Several terms must all match. Requests and their attempts are searched, also those without rows."),
  el("p", "note", "“Bodies” also searches the text in the bodies of requests and responses."));
$("helper").addEventListener("click", () => setHelp($("help").hidden));
$("helper").closest(".tools").addEventListener("keydown", event => {
  if (event.key !== "Escape" || $("help").hidden) return;
  event.stopPropagation();
  setHelp(false);
  $("helper").focus();
});
document.addEventListener("pointerdown", event => {
  if (!event.target.closest("#help, #helper")) setHelp(false);
});
