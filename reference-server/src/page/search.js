// Instant search: shows the results while the query is typed. The form works without this script.

const form = document.querySelector("form.find");
const input = form.querySelector("input[name=q]");
const said = document.querySelector("#said");
// A search starts when nothing was typed for this time, in milliseconds.
const PAUSE_MS = 300;
const LETTERS_MIN = 2;
// In a script without spaces one letter can be a word.
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Bopo}\p{sc=Yiii}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]/u;
let timer;
let running;

// The results of a page, or its error.
const foundIn = (page) => page.querySelector(".results, main > .error");

// Shows the results of a page in place of those of an earlier query. Without a page there are none.
function show(page, address) {
  for (const old of document.querySelectorAll(".results, main > .error")) old.remove();
  const found = page && foundIn(page);
  if (found) said.after(document.adoptNode(found));
  // Screen readers do not announce a status that is inserted with its text.
  const status = found?.querySelector("[role=status]");
  status?.removeAttribute("role");
  said.textContent = status?.textContent ?? "";
  // The links to the page in other languages lead to the same query.
  const query = new URL(address, location).searchParams.get("q");
  for (const link of document.querySelectorAll("footer.site a[hreflang]")) {
    const target = new URL(link.href);
    target.searchParams.set("q", query);
    link.href = target.href;
  }
  document.title = page?.title || document.querySelector("h1").textContent;
  history.replaceState(null, "", address);
}

async function showResults() {
  running?.abort();
  const { signal } = (running = new AbortController());
  const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
  const words = input.value.trim();
  if (words.length < LETTERS_MIN && !UNSPACED.test(words)) {
    show(null, address);
    return;
  }
  let page = null;
  try {
    const response = await fetch(address, { signal, headers: { accept: "text/html" } });
    // Also the page of an error, such as too many searches.
    page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    // The server cannot be reached.
  }
  // The next search replaced this one.
  if (signal.aborted) return;
  // A page of another program has no results, either.
  if (page && foundIn(page)) {
    show(page, address);
    return;
  }
  const old = document.querySelector("main > .error");
  if (old?.textContent === form.dataset.unreached) {
    // A screen reader would say it again.
    history.replaceState(null, "", address);
    return;
  }
  show(null, address);
  const failed = document.createElement("p");
  failed.className = "error";
  failed.setAttribute("role", "alert");
  failed.textContent = form.dataset.unreached;
  said.after(failed);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(showResults, PAUSE_MS);
});
