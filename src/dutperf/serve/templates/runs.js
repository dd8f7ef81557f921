"use strict";
// The list as it is now, every few seconds: runs begin and end while it is looked at.
(() => {
  const PARTS = ["header", "main"];
  const POLL_MS = 3000;

  // What has the focus keeps it: the same link of the new list.
  const show = (page) => {
    for (const name of PARTS) {
      const old = document.querySelector(name);
      const fresh = page.querySelector(name);
      if (!fresh || fresh.innerHTML === old.innerHTML) continue;
      const link = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
      old.replaceWith(fresh);
      if (link) fresh.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
    }
  };

  const read = async () => {
    try {
      const answer = document.hidden ? null : await fetch(location.href, { cache: "no-store" });
      if (answer?.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The server has ended, or is busy: it may be there again the next time.
    }
    setTimeout(read, POLL_MS);
  };
  setTimeout(read, POLL_MS);
})();
