"use strict";
(() => {
  const panel = document.getElementById("panel");
  const state = document.getElementById("state");
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const events = new EventSource(panel.dataset.events);
  events.addEventListener("open", () => say("running"));
  events.addEventListener("error", () => say("no answer, trying again"));
  // Made by the same templates as the page: all text in it is escaped already.
  events.addEventListener("panel", (event) => { panel.innerHTML = JSON.parse(event.data); });
  events.addEventListener("problem", (event) => {
    events.close();
    say(JSON.parse(event.data));
  });
  events.addEventListener("end", () => {
    events.close();
    location.reload();
  });
})();
