// Instant search: shows the results while the query is typed. The form works without this script.

const form = document.querySelector("form.find");
const input = form.querySelector("input[name=q]");
// A search starts when nothing was typed for this time, in milliseconds.
const PAUSE_MS = 300;
const LETTERS_MIN = 2;
let timer;
let running;

async function showResults() {
  running?.abort();
  if (input.value.trim().length < LETTERS_MIN) return;
  running = new AbortController();
  const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
  let page;
  try {
    const response = await fetch(address, { signal: running.signal, headers: { accept: "text/html" } });
    // Beyond the rate limit the button still works later.
    if (!response.ok) return;
    page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    // The next search replaced this one, or the server cannot be reached.
    return;
  }
  const results = page.querySelector(".results");
  if (!results) return;
  document.querySelector(".results")?.remove();
  document.querySelector("main > .error")?.remove();
  form.after(document.adoptNode(results));
  document.title = page.title;
  history.replaceState(null, "", address);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(showResults, PAUSE_MS);
});
