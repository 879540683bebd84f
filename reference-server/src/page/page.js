// Search, copy, and the transcribe button. Pages work without this script otherwise.

const one = (selector) => document.querySelector(selector);

// Search in the transcript. Matches use the CSS Custom Highlight API, so that the DOM is not changed.
const SHOWN_MAX = 2000;

function searchIn(words) {
  const query = one("#query");
  const found = one("#found");
  const [previous, next] = [one("#previous"), one("#next")];
  const marks = globalThis.CSS?.highlights && globalThis.Highlight ? CSS.highlights : null;
  const passages = Array.from(words.querySelectorAll("p > span:last-child"), (span) => {
    const text = span.firstChild?.data ?? "";
    const lower = text.toLowerCase();
    // Where lower case changes the length, offsets would be wrong: such text is searched case-sensitively.
    return { node: span.firstChild, text: lower.length === text.length ? lower : text };
  });
  let hits = [];
  let current = -1;

  const updateCount = () => {
    const many = hits.length >= SHOWN_MAX ? `${SHOWN_MAX}+` : hits.length;
    if (!query.value.trim()) found.textContent = "";
    else found.textContent = hits.length ? `${current + 1} of ${many}` : "Not found";
    previous.disabled = next.disabled = hits.length === 0;
  };

  const go = (to) => {
    if (!hits.length) return;
    current = (to + hits.length) % hits.length;
    marks?.set("here", new Highlight(hits[current]));
    const passage = hits[current].startContainer.parentElement;
    const scroll = () => passage.scrollIntoView({ block: "center", behavior: "instant" });
    scroll();
    // content-visibility: passages have their final height only after rendering, so scroll again.
    requestAnimationFrame(scroll);
    updateCount();
  };

  const search = () => {
    hits = [];
    current = -1;
    marks?.delete("found");
    marks?.delete("here");
    const needle = query.value.trim().toLowerCase();
    if (needle) {
      for (const { node, text } of passages) {
        for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + needle.length);
          hits.push(range);
          if (hits.length >= SHOWN_MAX) break;
        }
        if (hits.length >= SHOWN_MAX) break;
      }
      if (hits.length) {
        marks?.set("found", new Highlight(...hits));
        go(0);
      }
    }
    updateCount();
  };

  let timer;
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(current + (event.shiftKey ? -1 : 1));
  });
  previous.addEventListener("click", () => go(current - 1));
  next.addEventListener("click", () => go(current + 1));
  document.addEventListener("keydown", (event) => {
    const isEditing = event.target.closest?.("input, textarea, [contenteditable]");
    if (event.key !== "/" || isEditing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    query.focus();
  });
}

// Copies the same text as the download.
function enableCopy() {
  const status = one("#said");
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.firstChild;
    const name = label.data;
    button.addEventListener("click", async () => {
      try {
        const text = fetch(button.dataset.copy).then((response) => {
          if (!response.ok) throw new Error(String(response.status));
          return response.text();
        });
        await navigator.clipboard.writeText(await text);
        label.data = status.textContent = "Copied";
      } catch {
        label.data = "Not copied";
        status.textContent = "Copying failed. Download the file instead.";
      }
      setTimeout(() => {
        label.data = name;
        status.textContent = "";
      }, 2500);
    });
  }
  const menu = one(".keep");
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// Solves the challenge: ALTCHA's widget runs invisibly and computes in workers.
async function solveChallenge({ widget: code, worker, challenge }) {
  if (!globalThis.crypto?.subtle) throw new Error("insecure");
  await import(new URL(code, location));
  globalThis.$altcha.algorithms.set("PBKDF2/SHA-256", () => new Worker(new URL(worker, location)));
  const widget = document.createElement("altcha-widget");
  widget.hidden = true;
  const loaded = new Promise((done) => widget.addEventListener("load", done, { once: true }));
  document.body.append(widget);
  await loaded;
  try {
    await widget.configure({
      challenge: new URL(challenge, location).href,
      display: "invisible",
      humanInteractionSignature: false,
      minDuration: 0,
    });
    const result = await widget.verify();
    if (!result?.payload) throw new Error("unsolved");
    return result.payload;
  } finally {
    widget.remove();
  }
}

// Yields the Server-Sent Events of a response.
async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
      if (fields.event) yield { name: fields.event, data: JSON.parse(fields.data) };
    }
  }
}

function enableTranscribe(section) {
  const button = one("#transcribe");
  const work = one(".work");
  const [bar, stage, failed] = [one("#progress"), one("#stage"), one("#failed")];

  const showProgress = (message, percent) => {
    stage.textContent = message;
    if (percent === undefined) bar.removeAttribute("value");
    else bar.value = percent / 100;
  };
  const fail = (message) => {
    work.hidden = true;
    button.hidden = false;
    button.disabled = false;
    failed.textContent = message;
    failed.hidden = false;
    button.focus();
  };

  // Handles the final result: opens the page of the transcript, or shows the failure message.
  const finish = ({ available, watchUrl, failureMessage }) => {
    if (!available) return fail(failureMessage);
    showProgress("Done.", 100);
    const page = new URL(watchUrl);
    // `watchUrl` may have another origin than this page, for example behind a proxy; stay on this origin.
    const same = page.pathname.split("/").slice(-2).join("/") === location.pathname.split("/").slice(-2).join("/");
    if (same) location.reload();
    else location.assign(new URL(`../../watch/${page.pathname.split("/watch/")[1]}${page.search}`, location));
  };

  button.addEventListener("click", async () => {
    button.disabled = button.hidden = true;
    failed.hidden = true;
    work.hidden = false;
    showProgress("Your browser is solving the challenge.");
    let solution;
    try {
      solution = await solveChallenge(section.dataset);
    } catch (error) {
      return fail(
        error.message === "insecure"
          ? "Browsers solve the challenge on encrypted connections only. Open this page with https."
          : "The browser check failed. Try again.",
      );
    }
    try {
      const response = await fetch(section.dataset.transcribe, {
        method: "POST",
        headers: { accept: "text/event-stream", "content-type": "application/json" },
        body: JSON.stringify({ altcha: solution }),
      });
      if (!response.ok) return fail((await response.json()).detail);
      for await (const { name, data } of readEvents(response)) {
        if (name === "progress") showProgress(data.message, data.percent);
        else if (name === "result") return finish(data);
        else return fail(data.detail);
      }
      throw new Error("ended");
    } catch {
      fail("The connection was lost. The transcription continues: reload this page in a few seconds.");
    }
  });
}

const words = one("#words");
if (words) {
  searchIn(words);
  enableCopy();
}
const section = one("[data-transcribe]");
if (section) enableTranscribe(section);
