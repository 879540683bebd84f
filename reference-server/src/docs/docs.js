// Documentation pages: buttons that copy, the language of the samples, and the form that tries a lookup. All pages work
// without this script. The server sends copy.js before it, in the same file.

// Where this browser remembers the language of the samples.
const LANGUAGE = "verbatim-sample-language";
// Longest response that is shown, in characters.
const SHOWN_MAX = 100_000;
// What follows the status of a lookup that needs a key.
const NOT_ARCHIVED = " – This video is not archived here. Open its watchUrl in a browser, or send the request with an API key.";

const remembered = () => {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    // The browser permits no storage.
    return null;
  }
};
const remember = (language) => {
  try {
    localStorage.setItem(LANGUAGE, language);
  } catch {
    // The choice lasts as long as the page.
  }
};

function addCopyButton(block) {
  if (!navigator.clipboard) return;
  const frame = document.createElement("div");
  frame.className = "code";
  block.replaceWith(frame);
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "quiet", textContent: "Copy" });
  button.dataset.done = "Copied";
  frame.append(block, button);
  enableCopy(button, block);
}

function enableLanguages(samples) {
  const show = (language) => {
    for (const sample of samples) if (sample.dataset.language === language) sample.open = true;
  };
  const language = remembered();
  if (language) show(language);
  for (const sample of samples) {
    const summary = sample.querySelector("summary");
    summary.addEventListener("click", (event) => {
      event.preventDefault();
      const { top } = summary.getBoundingClientRect();
      show(sample.dataset.language);
      remember(sample.dataset.language);
      // Samples above have other heights now: the one that was clicked stays where it was.
      scrollBy({ top: summary.getBoundingClientRect().top - top, behavior: "instant" });
    });
  }
}

function enableConsole(form) {
  const area = form.querySelector("#console-response");
  const [status, code] = [area.querySelector("p"), area.querySelector("code")];
  const show = (line, text) => {
    status.textContent = line;
    // Never as HTML: the response contains the words of strangers.
    code.textContent = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
    code.parentElement.hidden = text === "";
    area.hidden = false;
  };
  let running;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // Only the response to the last request is shown.
    running?.abort();
    const { signal } = (running = new AbortController());
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    show("Sending …", "");
    try {
      const response = await fetch(address, { credentials: "omit", signal });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.includes("json");
      const value = isJson ? JSON.parse(text) : null;
      const hint = value?.failureReason === "needs_verification" ? NOT_ARCHIVED : "";
      if (!signal.aborted) show(`${response.status} ${response.statusText}${hint}`, isJson ? JSON.stringify(value, null, 2) : text);
    } catch {
      if (!signal.aborted) show("The server cannot be reached.", "");
    }
  });
}

for (const block of document.querySelectorAll("pre")) addCopyButton(block);
enableLanguages([...document.querySelectorAll("details.sample")]);
for (const form of document.querySelectorAll("form.console")) enableConsole(form);
