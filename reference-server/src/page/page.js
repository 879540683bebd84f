// Search, moments, copy, and the transcribe button. Pages work without this script otherwise.

const one = (selector) => document.querySelector(selector);

// Scrolls, and again in the next frames: content-visibility gives passages their final height after rendering only.
function scrollSettled(scroll, frames = 3) {
  scroll();
  if (frames > 0) requestAnimationFrame(() => scrollSettled(scroll, frames - 1));
}

// A page that opens at a moment: the browser may stop a smooth scroll when the heights above the moment change.
function showMoment() {
  const paragraph = /^#t\d+$/.test(location.hash) && one(location.hash);
  if (paragraph) scrollSettled(() => paragraph.scrollIntoView({ behavior: "instant" }));
}

// Search in the transcript. Matches use the CSS Custom Highlight API, so that the DOM is not changed.
const SHOWN_MAX = 2000;
const LISTED_MAX = 200;
// Work that pauses for the browser after this time, in milliseconds.
const SLICE_MS = 12;
// Characters that people type in another form than captions have them.
const TYPED = { "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "…": "...", "ß": "ss", "\u00ad": "", "\u200b": "", "\u200e": "", "\u200f": "" };
// Accents, and the points of Arabic and Hebrew. Vowel signs of other scripts are letters.
const POINTS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]/g;

// A text without differences of case, accents, quotation marks and width; `starts` has the position of each of its
// characters in the text, and is null if they are the same.
function fold(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return { folded: text.toLowerCase(), starts: null };
  let folded = "";
  const starts = [];
  let at = 0;
  for (const char of text) {
    const plain = TYPED[char] ?? char.normalize("NFKD").replace(POINTS, "").toLowerCase();
    for (let unit = 0; unit < plain.length; unit += 1) starts.push(at);
    folded += plain;
    at += char.length;
  }
  starts.push(at);
  return { folded, starts };
}

// The folded text of all paragraphs, joined by spaces so that a phrase is found across them.
async function foldParagraphs(words) {
  const parts = [];
  const units = [];
  let length = 0;
  let pause = performance.now() + SLICE_MS;
  for (const span of words.querySelectorAll("p > span:last-child")) {
    const node = span.firstChild;
    if (!node) continue;
    const { folded, starts } = fold(node.data);
    units.push({ node, starts, at: length, length: folded.length });
    parts.push(folded);
    length += folded.length + 1;
    if (performance.now() > pause) {
      await new Promise((resume) => setTimeout(resume));
      pause = performance.now() + SLICE_MS;
    }
  }
  return { text: parts.join(" "), units };
}

// Index of the last unit for which `is` holds; they come first. -1 if there is none.
function lastUnit(units, is) {
  let [low, high] = [0, units.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(units[middle])) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The part of the document between two positions of the folded text.
function rangeOf(units, from, to) {
  const [first, last] = [from, to - 1].map((position) => units[lastUnit(units, ({ at }) => at <= position)]);
  const range = new Range();
  // A position between two paragraphs is the end of the first one.
  const start = Math.min(from - first.at, first.length);
  range.setStart(first.node, first.starts ? first.starts[start] : start);
  let end = Math.min(to - last.at, last.length);
  if (last.starts) {
    // A character that is folded to several ends after the last of them.
    while (end < last.length && last.starts[end] === last.starts[end - 1]) end += 1;
    end = last.starts[end];
  }
  range.setEnd(last.node, end);
  return range;
}

// The last and the first characters of a text, in whole words where it has spaces.
function cutStart(text, length) {
  if (text.length <= length) return text;
  const end = text.slice(-length);
  return `…${end.slice(Math.max(0, end.search(/\s/)))}`;
}
function cutEnd(text, length) {
  if (text.length <= length) return text;
  const start = text.slice(0, length);
  const space = start.search(/\s\S*$/);
  return `${space > 0 ? start.slice(0, space) : start}…`;
}

const paragraphOf = (range) => range.startContainer.parentElement.closest("p");

function searchIn(words) {
  const query = one("#query");
  const found = one("#found");
  const [previous, next] = [one("#previous"), one("#next")];
  const list = one("#hits");
  const marks = globalThis.CSS?.highlights && globalThis.Highlight ? CSS.highlights : null;
  let prepared;
  let hits = [];
  let current = -1;
  let searches = 0;
  // Where the reader was before the search.
  let origin = null;

  const updateCount = () => {
    const many = hits.length >= SHOWN_MAX ? `${SHOWN_MAX}+` : hits.length;
    if (!query.value.trim()) found.textContent = "";
    else found.textContent = hits.length ? `${current + 1} of ${many}` : "Not found";
    previous.disabled = next.disabled = hits.length === 0;
    list.hidden = hits.length === 0;
  };

  const go = (to) => {
    if (!hits.length) return;
    current = (to + hits.length) % hits.length;
    marks?.set("here", new Highlight(hits[current]));
    const paragraph = paragraphOf(hits[current]);
    scrollSettled(() => paragraph.scrollIntoView({ block: "center", behavior: "instant" }));
    updateCount();
  };

  const showList = () => {
    if (!list.open) return;
    const items = hits.slice(0, LISTED_MAX).map((range, index) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      const paragraph = paragraphOf(range);
      link.href = paragraph.id ? `#${paragraph.id}` : "#words";
      const time = document.createElement("span");
      time.className = "when";
      time.textContent = paragraph.querySelector(".time").textContent;
      const mark = document.createElement("mark");
      mark.textContent = range.toString();
      const before = cutStart(range.startContainer.data.slice(0, range.startOffset), 40);
      const after = cutEnd(range.endContainer.data.slice(range.endOffset), 60);
      const quote = document.createElement("span");
      quote.dir = "auto";
      quote.append(before, mark, after);
      link.append(time, " ", quote);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        list.open = false;
        go(index);
        query.focus({ preventScroll: true });
      });
      item.append(link);
      return item;
    });
    list.querySelector("ol").replaceChildren(...items);
  };

  const keepInAddress = () => {
    const address = new URL(location);
    const text = query.value.trim();
    if (text) address.searchParams.set("q", text);
    else address.searchParams.delete("q");
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  };

  const search = async () => {
    const turn = (searches += 1);
    const needle = fold(query.value.trim().replace(/\s+/g, " ")).folded;
    const { text, units } = await (prepared ??= foldParagraphs(words));
    if (turn !== searches) return;
    hits = [];
    current = -1;
    marks?.delete("found");
    marks?.delete("here");
    if (needle) {
      origin ??= placeOf(units);
      let nearest = 0;
      for (let at = text.indexOf(needle); at >= 0 && hits.length < SHOWN_MAX; at = text.indexOf(needle, at + needle.length)) {
        if (at < origin.unit.at) nearest = hits.length + 1;
        hits.push(rangeOf(units, at, at + needle.length));
      }
      if (hits.length) {
        marks?.set("found", new Highlight(...hits));
        go(nearest % hits.length);
      }
    } else {
      origin = null;
    }
    updateCount();
    showList();
    keepInAddress();
  };

  // The first paragraph below the bar of controls, and its position on the screen.
  const placeOf = (units) => {
    const bar = one(".tools").getBoundingClientRect().bottom;
    const paragraph = ({ node }) => node.parentElement.closest("p");
    const above = lastUnit(units, (unit) => paragraph(unit).getBoundingClientRect().bottom <= bar);
    const unit = units[Math.min(above + 1, units.length - 1)];
    return { unit, paragraph: paragraph(unit), top: paragraph(unit).getBoundingClientRect().top };
  };

  const returnTo = (place) => {
    if (!place) return;
    scrollSettled(() => scrollBy({ top: place.paragraph.getBoundingClientRect().top - place.top, behavior: "instant" }));
  };

  let timer;
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && query.value) {
      event.preventDefault();
      const place = origin;
      query.value = "";
      list.open = false;
      search().then(() => returnTo(place));
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(current + (event.shiftKey ? -1 : 1));
  });
  previous.addEventListener("click", () => go(current - 1));
  next.addEventListener("click", () => go(current + 1));
  list.addEventListener("toggle", showList);
  document.addEventListener("keydown", (event) => {
    const isEditing = event.target.closest?.("input, textarea, [contenteditable]");
    if (event.key !== "/" || isEditing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    query.focus({ preventScroll: true });
  });
  const requested = new URL(location).searchParams.get("q");
  if (requested) {
    query.value = requested;
    search();
  }
}

// Links to moments, and quotations with their source.
function enableMoments(words) {
  const status = one("#said");
  const quote = one("#quote");

  const addressOf = (paragraph) => {
    const address = new URL(location);
    address.hash = "";
    address.searchParams.delete("q");
    if (paragraph.id) address.searchParams.set("t", paragraph.id.slice(1));
    return address.href;
  };

  // Writes to the clipboard and shows the outcome on an element for a moment.
  const copy = async (text, element, done) => {
    const [label, name] = [element.textContent, element.ariaLabel];
    // The name of an element must contain its text.
    element.ariaLabel = null;
    try {
      await navigator.clipboard.writeText(text);
      element.textContent = status.textContent = done;
    } catch {
      element.textContent = "Not copied";
      status.textContent = "Copying failed. Copy the address of this page instead.";
    }
    setTimeout(() => {
      element.textContent = label;
      element.ariaLabel = name;
      status.textContent = "";
    }, 2500);
  };

  words.addEventListener("click", (event) => {
    const link = event.target.closest("a.moment");
    if (link) copy(addressOf(link.closest("p")), link, "Link copied");
  });

  const selected = () => {
    const selection = getSelection();
    const isInside = !selection.isCollapsed && selection.rangeCount > 0 && words.contains(selection.anchorNode) && words.contains(selection.focusNode);
    const text = isInside ? selection.toString().trim().replace(/\s+/g, " ") : "";
    if (!text) return null;
    const start = selection.getRangeAt(0).startContainer;
    const element = start.nodeType === Node.TEXT_NODE ? start.parentElement : start;
    const paragraph = element.closest("p") ?? words.querySelector("p");
    return { text, paragraph };
  };
  document.addEventListener("selectionchange", () => {
    quote.hidden = selected() === null;
  });
  // The selection stays while the button is pressed.
  quote.addEventListener("pointerdown", (event) => event.preventDefault());
  quote.addEventListener("click", () => {
    const chosen = selected();
    if (!chosen) return;
    const { title, author } = words.dataset;
    const time = chosen.paragraph.querySelector(".time").textContent;
    const source = [title, author, time].filter(Boolean).join(", ");
    copy(`“${chosen.text}”\n— ${source}\n${addressOf(chosen.paragraph)}`, quote, "Quotation copied");
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
  const menus = [menu, one("#hits")];
  document.addEventListener("click", (event) => {
    for (const opened of menus) if (!opened.contains(event.target)) opened.open = false;
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
  enableMoments(words);
  enableCopy();
  showMoment();
}
const section = one("[data-transcribe]");
if (section) enableTranscribe(section);
