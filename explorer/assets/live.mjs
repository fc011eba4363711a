/**
 * Keeps the part of a page up to date that is marked with `data-live`: each new head makes the page
 * be fetched again, and that part replaced. Without this script the page is loaded again by hand.
 */

/** Pause between two fetches, however quickly heads come. */
const PAUSE_MS = 1_000;

const part = () => document.querySelector("[data-live]");

let isFetching = false;
let isWanted = false;

/** Fetches the page and puts its part in the place of the one that is shown. */
async function refresh() {
  if (isFetching || document.hidden) {
    isWanted = true;
    return;
  }
  isFetching = true;
  isWanted = false;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    // Too many pages, or a part behind them that is away: what is shown is better than that.
    if (answer.status === 429 || answer.status >= 500) throw new Error(`HTTP ${answer.status}`);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = next.querySelector("[data-live]");
    const shown = part();
    // Whoever stands inside with the keyboard keeps the place.
    if (shown !== null && !shown.contains(document.activeElement)) {
      if (fresh === null) location.reload();
      else shown.replaceWith(document.adoptNode(fresh));
    }
  } catch {
    // The next head brings the next try.
  }
  setTimeout(() => {
    isFetching = false;
    if (isWanted) void refresh();
  }, PAUSE_MS);
}

if (part() !== null) {
  const events = new EventSource("/live");
  let newest = "";
  events.addEventListener("head", ({ lastEventId }) => {
    if (newest !== "" && lastEventId !== newest) void refresh();
    newest = lastEventId;
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isWanted) void refresh();
  });
}
