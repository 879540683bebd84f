// Search, moments, copy and the player of a transcript. The page works without this script otherwise. The server sends
// fold.js before it, in the same file.

const one = (selector) => document.querySelector(selector);
const make = (name, properties) => Object.assign(document.createElement(name), properties);

// The texts of this script, in the language of the page.
const messages = JSON.parse(one("[data-messages]")?.dataset.messages ?? "{}");
const filled = (message, values) => message.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

// Scrolls, and again in the next frames: content-visibility gives passages their final height after rendering only.
function scrollSettled(scroll, frames = 3) {
  scroll();
  if (frames > 0) requestAnimationFrame(() => scrollSettled(scroll, frames - 1));
}

// The height at the top of the screen that the bar of controls or the player covers above the words.
function coveredHeight(words) {
  const { left, right } = words.getBoundingClientRect();
  const sticky = [...document.querySelectorAll(".tools, #player")].filter((bar) => getComputedStyle(bar).position === "sticky");
  const above = sticky.map((bar) => bar.getBoundingClientRect()).filter((box) => box.left < right && left < box.right);
  return Math.max(0, ...above.map(({ height }) => height));
}

// Scrolls a rectangle to the middle of the rest of the screen; a taller one begins at its top.
function showBelowBar(words, rectangle) {
  scrollSettled(() => {
    const { top, height } = rectangle();
    const covered = coveredHeight(words);
    const space = Math.max(8, (innerHeight - covered - height) / 2);
    scrollBy({ top: top - covered - space, behavior: "instant" });
  });
}

// The first of these units whose paragraph is below the bar of controls.
function firstBelowBar(words, units, paragraph) {
  const bar = Math.max(one(".tools").getBoundingClientRect().bottom, coveredHeight(words));
  const above = lastUnit(units, (unit) => paragraph(unit).getBoundingClientRect().bottom <= bar);
  return units[Math.min(above + 1, units.length - 1)];
}

// A page that opens at a moment: the browser may stop a smooth scroll when the heights above the moment change.
function showMoment() {
  const paragraph = /^#t\d+$/.test(location.hash) && one(location.hash);
  if (paragraph) scrollSettled(() => paragraph.scrollIntoView({ behavior: "instant" }));
}

// Search in the transcript. Matches use the CSS Custom Highlight API, so that the DOM is not changed.
const SHOWN_MAX = 2000;
const LISTED_MAX = 200;
// Where this browser remembers whether the key / leads to the search.
const SHORTCUT = "verbatim-search-key";

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
// The second in which a paragraph starts. Only the first one of a second has an id.
const startOf = (paragraph) => (paragraph.matches("p[id]") ? Number(paragraph.id.slice(1)) : startOf(paragraph.previousElementSibling));

// A match is the list of its ranges.
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
  // How far the page was scrolled before the first letter: the browser scrolls to a field that is above the screen.
  let scrolled = null;

  const countOfHits = () => (hits.length >= SHOWN_MAX ? `${SHOWN_MAX}+` : hits.length);

  const updateCount = () => {
    if (!query.value.trim()) found.textContent = "";
    else found.textContent = hits.length ? filled(messages.hit, { current: current + 1, count: countOfHits() }) : messages.noHit;
    previous.disabled = next.disabled = hits.length === 0;
    list.hidden = hits.length === 0;
  };

  const go = (to) => {
    if (!hits.length) return;
    current = (to + hits.length) % hits.length;
    marks?.set("here", new Highlight(...hits[current]));
    const [start] = hits[current];
    // The match itself: its paragraph may be higher than the screen.
    paragraphOf(start).scrollIntoView({ block: "center", behavior: "instant" });
    showBelowBar(words, () => start.getClientRects()[0] ?? paragraphOf(start).getBoundingClientRect());
    updateCount();
  };

  const showList = () => {
    if (!list.open) return;
    const items = hits.slice(0, LISTED_MAX).map((ranges, index) => {
      const [start, end] = [ranges[0], ranges.at(-1)];
      const paragraph = paragraphOf(start);
      const link = make("a", { href: `#t${startOf(paragraph)}` });
      const time = make("span", { className: "when", textContent: paragraph.querySelector(".time").textContent });
      const mark = make("mark", { textContent: ranges.map(String).join(" ") });
      const before = cutStart(start.startContainer.data.slice(0, start.startOffset), 40);
      const after = cutEnd(end.endContainer.data.slice(end.endOffset), 60);
      const quote = make("span", { dir: "auto" });
      quote.append(before, mark, after);
      link.append(time, " ", quote);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        list.open = false;
        go(index);
        (paragraph.querySelector("a.time, a.moment") ?? query).focus({ preventScroll: true });
      });
      const item = make("li");
      item.append(link);
      return item;
    });
    const listed = filled(messages.hit, { current: LISTED_MAX, count: countOfHits() });
    if (hits.length > LISTED_MAX) items.push(make("li", { className: "hint", textContent: listed }));
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
    if (needle && units.length) {
      origin ??= placeBefore(units);
      let nearest = 0;
      for (let at = text.indexOf(needle); at >= 0 && hits.length < SHOWN_MAX; at = text.indexOf(needle, at + needle.length)) {
        const ranges = rangesOf(units, at, at + needle.length);
        if (!ranges.length) continue;
        if (at < origin.unit.at) nearest = hits.length + 1;
        hits.push(ranges);
      }
      if (hits.length) {
        marks?.set("found", new Highlight(...hits.flat()));
        go(nearest % hits.length);
      }
    } else {
      origin = null;
    }
    updateCount();
    showList();
    keepInAddress();
  };

  // The first paragraph below the bar of controls, and its position on the screen, before the first letter.
  const placeBefore = (units) => {
    const present = scrollY;
    if (scrolled !== null) scrollTo({ top: scrolled, behavior: "instant" });
    const paragraph = ({ node }) => node.parentElement.closest("p");
    const unit = firstBelowBar(words, units, paragraph);
    const place = { unit, paragraph: paragraph(unit), top: paragraph(unit).getBoundingClientRect().top };
    if (scrolled !== null) scrollTo({ top: present, behavior: "instant" });
    scrolled = null;
    return place;
  };

  const returnTo = (place) => {
    if (!place) return;
    scrollSettled(() => scrollBy({ top: place.paragraph.getBoundingClientRect().top - place.top, behavior: "instant" }));
  };

  let timer;
  query.addEventListener("beforeinput", () => {
    if (!query.value) scrolled = scrollY;
  });
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  query.addEventListener("keydown", (event) => {
    // Keys of an input method; Safari sends the confirming one after the composition, with the code 229.
    if (event.isComposing || event.keyCode === 229) return;
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
  enableShortcut(query);
  const requested = new URL(location).searchParams.get("q");
  // The reader may have typed before this script was loaded.
  if (requested) query.value ||= requested;
  if (query.value) search();
}

// The key / leads to the search, unless the reader has switched that off: speech input can send single characters.
function enableShortcut(query) {
  const setting = one("#shortcut");
  const announce = () => {
    query.ariaKeyShortcuts = setting.checked ? "/" : null;
  };
  try {
    setting.checked = localStorage.getItem(SHORTCUT) !== "off";
  } catch {
    // The browser permits no storage: the choice lasts as long as the page.
  }
  announce();
  setting.addEventListener("change", () => {
    announce();
    try {
      localStorage.setItem(SHORTCUT, setting.checked ? "on" : "off");
    } catch {
      // As above.
    }
  });
  document.addEventListener("keydown", (event) => {
    const isEditing = event.target.closest?.("input, textarea, [contenteditable]");
    if (!setting.checked || event.key !== "/" || isEditing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    query.focus({ preventScroll: true });
  });
}

// Links to this page in other languages lead to the same search and moment.
function keepPlaceInLinks() {
  for (const type of ["pointerdown", "focusin"]) {
    document.addEventListener(type, (event) => {
      const link = event.target.closest?.("footer.site a[hreflang], .languages a");
      if (!link) return;
      const address = new URL(link.href);
      const place = { q: new URL(location).searchParams.get("q"), t: /^#t(\d+)$/.exec(location.hash)?.[1] };
      for (const [name, value] of Object.entries(place)) {
        if (value) address.searchParams.set(name, value);
        else address.searchParams.delete(name);
      }
      link.href = address.href;
    });
  }
}

// Elements that have shown an outcome, with their own labels.
const originals = new WeakMap();

// Writes to the clipboard and shows the outcome on an element for a moment; `advice` is what to do otherwise.
async function showCopy(element, write, done, advice) {
  const status = one("#said");
  const label = element.firstChild;
  const original = originals.get(element) ?? { label: label.data, name: element.ariaLabel };
  originals.set(element, original);
  const outcome = await write().then(() => [done, done], () => [messages.notCopied, advice]);
  clearTimeout(original.timer);
  // The name of an element must contain its text.
  element.ariaLabel = null;
  [label.data, status.textContent] = outcome;
  original.timer = setTimeout(() => {
    label.data = original.label;
    element.ariaLabel = original.name;
    status.textContent = "";
  }, 2500);
}

// Links to moments, and quotations with their source.
function enableMoments(words) {
  const quote = one("#quote");

  const addressOf = (paragraph) => {
    const address = new URL(location);
    address.hash = "";
    address.searchParams.delete("q");
    address.searchParams.set("t", startOf(paragraph));
    return address.href;
  };

  const copy = (text, element, done) => showCopy(element, async () => navigator.clipboard.writeText(text), done, messages.copyAddress);

  words.addEventListener("click", (event) => {
    const link = event.target.closest("a.moment");
    if (link) copy(addressOf(link.closest("p")), link, messages.linkCopied);
  });

  // The texts of the words, from the first selection on.
  let nodes;

  // The selected words of a range, by paragraph.
  const partsOf = (range) => {
    const first = lastUnit(nodes, (node) => range.comparePoint(node, node.length) < 0) + 1;
    const last = lastUnit(nodes, (node) => range.comparePoint(node, 0) <= 0);
    return nodes.slice(first, last + 1).map((node) => {
      const start = node === range.startContainer ? range.startOffset : 0;
      const end = node === range.endContainer ? range.endOffset : node.length;
      return { node, text: node.data.slice(start, end).trim() };
    });
  };

  // The selected words without times and headings, and the paragraph in which they begin; null if there are none.
  const selected = () => {
    const selection = getSelection();
    if (selection.isCollapsed || !words.contains(selection.anchorNode) || !words.contains(selection.focusNode)) return null;
    nodes ??= [...words.querySelectorAll(SPOKEN)].map((span) => span.firstChild).filter(Boolean);
    // Firefox has several ranges, between the times.
    const ranges = Array.from({ length: selection.rangeCount }, (_, index) => selection.getRangeAt(index));
    const parts = ranges.flatMap(partsOf).filter(({ text }) => text);
    if (!parts.length) return null;
    const text = parts.map((part) => part.text).join(" ").replace(/\s+/g, " ");
    return { text, paragraph: parts[0].node.parentElement.closest("p") };
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
    copy(`“${chosen.text}”\n— ${source}\n${addressOf(chosen.paragraph)}`, quote, messages.quoteCopied);
  });
}

// Copies the same text as the download.
function enableCopy() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    const write = async () => {
      const text = fetch(button.dataset.copy).then((response) => {
        if (!response.ok) throw new Error(String(response.status));
        return response.text();
      });
      // Safari permits the clipboard only in the click itself, before the text is there.
      if (globalThis.ClipboardItem) {
        const blob = text.then((loaded) => new Blob([loaded], { type: "text/plain" }));
        await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
      } else {
        await navigator.clipboard.writeText(await text);
      }
    };
    button.addEventListener("click", () => showCopy(button, write, messages.copied, messages.copyFile));
  }
  for (const menu of [one(".keep"), one("#hits")]) {
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
}

// The paragraphs with their starts in seconds.
const paragraphsOf = (words) => [...words.querySelectorAll("p[id]")].map((paragraph) => ({ paragraph, start: startOf(paragraph) }));

// Questions about the video. Without this script the form loads the page with the answer.
function enableQuestions(words) {
  const form = one("#questions form");
  if (!form) return;
  const button = form.querySelector("button");
  const paragraphs = paragraphsOf(words);
  const paragraphAt = (seconds) => paragraphs[Math.max(lastUnit(paragraphs, ({ start }) => start <= seconds), 0)]?.paragraph;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const answer = one("#answer");
    let isAnswered = false;
    try {
      const { ask } = await import(new URL(form.dataset.script, location));
      isAnswered = await ask(form, answer, paragraphAt);
    } catch {
      // The script could not be loaded.
    }
    if (!isAnswered) {
      // Without a connection the form would lead to an error page of the browser.
      const lost = make("p", { className: "error", textContent: JSON.parse(form.dataset.texts).lost });
      const reached = fetch(form.dataset.widget, { method: "HEAD", cache: "no-store" });
      await reached.then(() => form.submit(), () => answer.replaceChildren(lost));
    }
    button.disabled = false;
  });
}

// The player beside the words: times seek, and the words follow the video.
function enablePlayer(words) {
  const button = one("#watch");
  if (!button) return;
  const article = words.closest("article");
  const paragraphs = paragraphsOf(words);
  let [player, current] = [null, null];

  // The second at which the reader is: of the paragraph of the address, or of the first one on the screen.
  const readerStart = () => {
    const target = words.querySelector("p:target");
    const first = scrollY > 0 && firstBelowBar(words, paragraphs, ({ paragraph }) => paragraph);
    return target ? startOf(target) : first && first !== paragraphs[0] ? first.start : 0;
  };

  const showTime = (start) => (seconds, isFollowed) => {
    // The player may report 0 before it is at the start.
    if (!current && seconds < 1 && start > 0) return;
    const next = paragraphs[lastUnit(paragraphs, (unit) => unit.start <= seconds)]?.paragraph ?? null;
    if (next === current) return;
    current?.classList.remove("now");
    next?.classList.add("now");
    current = next;
    if (next && isFollowed) showBelowBar(words, () => next.getBoundingClientRect());
  };

  const close = () => {
    player?.close();
    player = null;
    current?.classList.remove("now");
    current = null;
    one("#player")?.remove();
    article.classList.remove("watching");
    button.disabled = false;
    button.focus();
  };

  const open = async () => {
    if (button.disabled) return;
    button.disabled = true;
    const start = readerStart();
    const aside = make("aside", { id: "player", ariaLabel: messages.player });
    one(".tools").before(aside);
    article.classList.add("watching");
    try {
      const { openPlayer } = await import(new URL(button.dataset.player, location));
      player = openPlayer({ video: button.dataset.video, aside, title: words.dataset.title, texts: messages, start, onTime: showTime(start), onClose: close });
    } catch {
      close();
      one("#said").textContent = messages.blocked;
    }
  };

  button.addEventListener("click", open);
  words.addEventListener("click", (event) => {
    const time = event.target.closest("a.time");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!time || !player || !isPlain) return;
    event.preventDefault();
    player.seek(startOf(time.closest("p")));
  });
}

const words = one("#words");
if (words) {
  searchIn(words);
  keepPlaceInLinks();
  enableMoments(words);
  enableCopy();
  enableQuestions(words);
  enablePlayer(words);
  showMoment();
  addEventListener("hashchange", showMoment);
}
