extension InspectorPage {
    /// The connection to the program.
    static let connectionScript = #"""
        let version = 0, source = null, frame = 0;
        function setLive(text, className) {
          $("live").textContent = text;
          $("live").className = "live " + className;
        }
        function schedule() {
          if (!frame) frame = requestAnimationFrame(() => { frame = 0; update(true); });
        }
        function receive(event) {
          const message = JSON.parse(event.data);
          version = message.version;
          removeUpTo(message.oldest);
          for (const row of message.exchanges) add(row);
          const isShown = selected !== null && !$("detail").hidden;
          if (isShown && message.exchanges.some(row => row.number === selected)) load();
          schedule();
        }
        function connect() {
          source = new EventSource("events?after=" + version);
          source.onopen = () => setLive("Live", "on");
          source.onmessage = receive;
          source.onerror = () => setLive(
            source.readyState === EventSource.CLOSED ? "The program has ended" : "Reconnecting", "off");
        }
        $("pause").addEventListener("click", () => {
          const pauses = $("pause").getAttribute("aria-pressed") !== "true";
          $("pause").setAttribute("aria-pressed", String(pauses));
          source.close();
          if (pauses) setLive("Paused", ""); else connect();
        });
        $("clear").addEventListener("click", () => {
          hiddenUpTo = Math.max(0, ...rows.keys());
          if (selected !== null) { selected = null; $("detail").hidden = true; $("main").classList.remove("split"); }
          update();
        });
        // The duration of exchanges in progress.
        setInterval(() => { if (shown.some(row => row.duration === undefined)) schedule(); }, 250);
        update();
        connect();
        list.focus();
        """#
}
