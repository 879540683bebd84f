// What pages do beside showing themselves: search, copy, and the button of a video without a transcript. Everything else
// works without this.

const one = (selector) => document.querySelector(selector);

// Searching in the words of the page. The marks are the browser's own highlights, so the page itself is not changed.
const SHOWN_MAX = 2000;

function searchIn(words) {
  const query = one("#query");
  const found = one("#found");
  const [previous, next] = [one("#previous"), one("#next")];
  const marks = globalThis.CSS?.highlights && globalThis.Highlight ? CSS.highlights : null;
  const passages = Array.from(words.querySelectorAll("p > span:last-child"), (span) => {
    const text = span.firstChild?.data ?? "";
    const lower = text.toLowerCase();
    // Where small letters take more room, places would not agree: there capitals count.
    return { node: span.firstChild, text: lower.length === text.length ? lower : text };
  });
  let hits = [];
  let place = -1;

  const say = () => {
    const many = hits.length >= SHOWN_MAX ? `${SHOWN_MAX}+` : hits.length;
    if (!query.value.trim()) found.textContent = "";
    else found.textContent = hits.length ? `${place + 1} of ${many}` : "Not found";
    previous.disabled = next.disabled = hits.length === 0;
  };

  const go = (to) => {
    if (!hits.length) return;
    place = (to + hits.length) % hits.length;
    marks?.set("here", new Highlight(hits[place]));
    const passage = hits[place].startContainer.parentElement;
    const show = () => passage.scrollIntoView({ block: "center", behavior: "instant" });
    show();
    // Passages that were not drawn before take their true room only now.
    requestAnimationFrame(show);
    say();
  };

  const look = () => {
    hits = [];
    place = -1;
    marks?.delete("found");
    marks?.delete("here");
    const wanted = query.value.trim().toLowerCase();
    if (wanted) {
      for (const { node, text } of passages) {
        for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + wanted.length);
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
    say();
  };

  let soon;
  query.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(look, 120);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(place + (event.shiftKey ? -1 : 1));
  });
  previous.addEventListener("click", () => go(place - 1));
  next.addEventListener("click", () => go(place + 1));
  document.addEventListener("keydown", (event) => {
    const writes = event.target.closest?.("input, textarea, [contenteditable]");
    if (event.key !== "/" || writes || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    query.focus();
  });
}

// Copying: the same text as the download's.
function copies() {
  const said = one("#said");
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.firstChild;
    const name = label.data;
    button.addEventListener("click", async () => {
      try {
        const text = fetch(button.dataset.copy).then((answer) => {
          if (!answer.ok) throw new Error(String(answer.status));
          return answer.text();
        });
        await navigator.clipboard.writeText(await text);
        label.data = said.textContent = "Copied";
      } catch {
        label.data = "Not copied";
        said.textContent = "It could not be copied: download it instead.";
      }
      setTimeout(() => {
        label.data = name;
        said.textContent = "";
      }, 2500);
    });
  }
  const keep = one(".keep");
  document.addEventListener("click", (event) => {
    if (!keep.contains(event.target)) keep.open = false;
  });
  keep.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !keep.open) return;
    keep.open = false;
    keep.querySelector("summary").focus();
  });
}

// The check of the browser: ALTCHA's widget, without a face, solves the challenge in workers.
async function solved({ widget: code, worker, challenge }) {
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

// The events of an answer, as they come.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
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

function transcribes(place) {
  const button = one("#transcribe");
  const work = one(".work");
  const [bar, stage, failed] = [one("#progress"), one("#stage"), one("#failed")];

  const tell = (message, percent) => {
    stage.textContent = message;
    if (percent === undefined) bar.removeAttribute("value");
    else bar.value = percent / 100;
  };
  const fail = (why) => {
    work.hidden = true;
    button.hidden = false;
    button.disabled = false;
    failed.textContent = why;
    failed.hidden = false;
    button.focus();
  };

  // What is known at the end: the page of the transcript, or why there is none.
  const end = ({ available, watchUrl, failureMessage }) => {
    if (!available) return fail(failureMessage);
    tell("Done.", 100);
    const page = new URL(watchUrl);
    // The service may be reached under another name than the one that it gives itself.
    const same = page.pathname.split("/").slice(-2).join("/") === location.pathname.split("/").slice(-2).join("/");
    if (same) location.reload();
    else location.assign(new URL(`../../watch/${page.pathname.split("/watch/")[1]}${page.search}`, location));
  };

  button.addEventListener("click", async () => {
    button.disabled = button.hidden = true;
    failed.hidden = true;
    work.hidden = false;
    tell("Your browser does its calculation.");
    let solution;
    try {
      solution = await solved(place.dataset);
    } catch (error) {
      return fail(
        error.message === "insecure"
          ? "Browsers do this calculation on encrypted connections only: open this page with https."
          : "The check of your browser did not succeed: please try again.",
      );
    }
    try {
      const answer = await fetch(place.dataset.transcribe, {
        method: "POST",
        headers: { accept: "text/event-stream", "content-type": "application/json" },
        body: JSON.stringify({ altcha: solution }),
      });
      if (!answer.ok) return fail((await answer.json()).detail);
      for await (const { name, data } of events(answer)) {
        if (name === "progress") tell(data.message, data.percent);
        else if (name === "result") return end(data);
        else return fail(data.detail);
      }
      throw new Error("ended");
    } catch {
      fail("The connection was lost. What was begun goes on: look at this page again in a moment.");
    }
  });
}

const words = one("#words");
if (words) {
  searchIn(words);
  copies();
}
const place = one("[data-transcribe]");
if (place) transcribes(place);
