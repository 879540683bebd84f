// Reading, searching, copying and downloading a transcript of one hour; also by keyboard only, and without scripts.

import { readFileSync } from "node:fs";

import { BASE, assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

const { LONG, CHAPTERS } = process.env;

// A transcript with chapters: neither their titles nor times are in quotations and matches.
async function readChapters(page) {
  await page.goto(CHAPTERS);
  for (const [select, expected] of [
    // The last word before a heading and the first one after it.
    [([first, second]) => [first, first.data.lastIndexOf("dawn"), second, 3], /^“dawn and”\n— Two harbours, Ann, 0:00\nhttp.*\?t=0$/],
    // From a heading on.
    [([, second]) => [document.querySelector("#words h2").firstChild, 4, second, 8], /^“and came”\n— Two harbours, Ann, 1:00\nhttp.*\?t=60$/],
    // From the time of a paragraph without an id.
    [([, , third]) => [third.parentElement.closest("p"), 0, third, 4], /^“צה״ל”\n— Two harbours, Ann, 1:00\nhttp.*\?t=60$/],
    // Between two paragraphs, from the element of all words.
    [([, second]) => [document.querySelector("#words"), 1, second, 3], /^“and”\n— Two harbours, Ann, 1:00\nhttp.*\?t=60$/],
  ]) {
    await page.evaluate(`{
      const nodes = [...document.querySelectorAll("#words p > span:last-child")].map((span) => span.firstChild);
      getSelection().setBaseAndExtent(...(${select})(nodes));
    }`);
    await page.locator("#quote").click();
    await page.waitForFunction(() => document.querySelector("#said").textContent === "Quotation copied");
    assert.match(await page.evaluate("navigator.clipboard.readText()"), expected);
    await page.waitForFunction(() => document.querySelector("#said").textContent === "");
  }
  // A heading, a caret, and a selection that only touches words quote nothing.
  for (const select of [
    () => getSelection().selectAllChildren(document.querySelector("#words h2")),
    () => getSelection().collapse(document.querySelector("#words p > span:last-child").firstChild, 3),
    () => {
      const [first, second] = document.querySelectorAll("#words p > span:last-child");
      getSelection().setBaseAndExtent(first, 1, second, 0);
    },
  ]) {
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("#words p")));
    await page.waitForFunction(() => !document.querySelector("#quote").hidden);
    await page.evaluate(select);
    await page.waitForFunction(() => document.querySelector("#quote").hidden);
  }

  const search = async (text) => {
    await page.locator("#query").fill(text);
    await page.waitForFunction((query) => new URL(location).searchParams.get("q") === query, text);
    await page.waitForFunction(() => document.querySelector("#found").textContent !== "");
    return page.locator("#found").textContent();
  };
  assert.equal(await search("dawn and"), "1 of 1");
  await page.locator("#hits summary").click();
  assert.equal(await page.locator("#hits li").textContent(), "0:00 We left the harbour at dawn and came home at night.");
  assert.equal(await page.locator("#hits mark").textContent(), "dawn and");
  assert.deepEqual(await page.evaluate("[...CSS.highlights.get('found')].map(String)"), ["dawn", "and"]);
  await page.locator("#hits summary").click();
  // Letters are found as keyboards have them.
  for (const text of ['צה"ל', "ג'ירפה", "میخواهم", "السلام", "ΛΟΓΟΣ", "οδος", "it's"]) {
    assert.equal(await search(text), "1 of 1", text);
  }
}

const countShifts = () => {
  globalThis.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) globalThis.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
};

await play(async (browser) => {
  const { context, page, activity } = await open(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  const loaded = [];
  const record = (request) => loaded.push(request);
  page.on("requestfinished", record);
  await page.addInitScript(countShifts);
  await page.goto(LONG, { waitUntil: "networkidle" });

  // One style sheet and one script, both small, and no layout shift during loading.
  const kinds = await page.evaluate(() =>
    performance.getEntriesByType("resource").map(({ initiatorType, name }) => `${initiatorType} ${name.split(".").pop()}`),
  );
  assert.deepEqual(kinds.filter((kind) => !kind.endsWith("svg")).sort(), ["link css", "script js"]);
  page.off("requestfinished", record);
  const sizes = await Promise.all(
    loaded.filter((request) => request.resourceType() !== "document").map((request) => request.sizes()),
  );
  const bytes = sizes.reduce((sum, size) => sum + size.responseHeadersSize + size.responseBodySize, 0);
  assert.ok(bytes > 1000 && bytes < 20_000, `${bytes} bytes of resources`);
  assert.equal(await page.evaluate("shifted"), 0, "layout shift during loading");

  // The accessibility tree.
  const tree = await page.locator("body").ariaSnapshot();
  for (const part of ['heading "The lamp & the <b>warden</b>" [level=1]', "searchbox", 'button "Next match"', "list \"About"]) {
    assert.ok(tree.includes(part), `${part}\n${tree.slice(0, 1500)}`);
  }
  await assertAccessible(page, "transcript");

  // Times link to their position in the video.
  const time = page.locator("a.time").nth(3);
  const seconds = (await time.textContent()).split(":").reduce((sum, part) => 60 * sum + Number(part), 0);
  assert.match(await time.getAttribute("href"), new RegExp(`^https://www\\.youtube\\.com/watch\\?v=.{11}&t=${seconds}s$`));

  // Search by keyboard.
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.id"), "query");
  await page.keyboard.type("LANTERN");
  const found = page.locator("#found");
  // The address follows the last search: on a slow machine there are earlier ones, of its first letters.
  await page.waitForURL(/q=LANTERN$/);
  await page.waitForFunction(() => document.querySelector("#found").textContent.startsWith("1 of "));
  const count = Number((await found.textContent()).split(" ").pop());
  assert.equal(count, await page.evaluate("document.querySelector('#words').textContent.split(/lantern/i).length - 1"));
  assert.equal(await page.evaluate("CSS.highlights.get('found').size"), count);
  await page.keyboard.press("Enter");
  assert.equal(await found.textContent(), `2 of ${count}`);
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.press("Shift+Enter");
  assert.equal(await found.textContent(), `${count} of ${count}`);
  await page.waitForFunction(() => {
    const [range] = CSS.highlights.get("here");
    const { top, bottom } = range.getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  });
  await screenshot(page, "search");
  // A list of the matches with their times.
  await page.locator("#hits summary").click();
  const items = page.locator("#hits li a");
  await items.first().waitFor();
  assert.equal(await items.count(), Math.min(count, 200));
  assert.match(await items.nth(2).textContent(), /^\d+:\d\d .*lantern/is);
  await assertAccessible(page, "list of matches");
  await screenshot(page, "matches");
  await items.nth(2).press("Escape");
  assert.equal(await page.locator("#hits").getAttribute("open"), null);
  await page.locator("#hits summary").click();
  await items.nth(2).click();
  assert.equal(await found.textContent(), `3 of ${count}`);
  // The focus is then at the links of the match.
  assert.ok(await page.evaluate(() => {
    const [range] = CSS.highlights.get("here");
    return document.activeElement.closest("#words p")?.contains(range.startContainer);
  }));
  // Keys of an input method change nothing.
  await page.locator("#query").evaluate((query) => {
    for (const key of ["Enter", "Escape"]) query.dispatchEvent(new KeyboardEvent("keydown", { key, isComposing: true }));
  });
  assert.deepEqual([await found.textContent(), await page.locator("#query").inputValue()], [`3 of ${count}`, "LANTERN"]);
  assert.equal(new URL(page.url()).searchParams.get("q"), "LANTERN");

  // Accents, quotation marks and case do not matter, and a phrase may end in the next paragraph.
  const both = await page.evaluate(() => {
    const [first, second] = document.querySelectorAll("#words p > span:last-child");
    return `${first.textContent.slice(-12)}  ${second.textContent.slice(0, 10)}`;
  });
  await page.locator("#query").fill(both.toUpperCase().replace("E", "É"));
  await page.waitForFunction(() => {
    const ranges = [...CSS.highlights.get("found") ?? []];
    return ranges.some((range, index) => {
      const next = ranges[index + 1];
      return range.endOffset === range.endContainer.length && next?.startOffset === 0 && `${range} ${next}`.length > 15;
    });
  });

  // The nearest match comes first, and Escape returns to where the reader was.
  await page.locator("#query").fill("");
  await page.waitForFunction(() => document.querySelector("#found").textContent === "");
  await page.evaluate("document.activeElement.blur(), scrollTo(0, document.body.scrollHeight / 2)");
  // The first paragraph below the bar, and its position on the screen.
  const findPlace = () => {
    const bar = document.querySelector(".tools").getBoundingClientRect().bottom;
    const first = [...document.querySelectorAll("#words p")].find((p) => p.getBoundingClientRect().bottom > bar);
    return { id: first.id, top: first.getBoundingClientRect().top };
  };
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const place = await page.evaluate(findPlace);
  await page.keyboard.press("/");
  await page.keyboard.type("lantern");
  await page.waitForURL(/q=lantern$/);
  await page.waitForFunction(() => /^\d+ of/.test(document.querySelector("#found").textContent));
  const nearest = Number((await found.textContent()).split(" ")[0]);
  assert.ok(nearest > count / 4 && nearest < count, `${nearest} of ${count}`);
  await page.keyboard.press("Escape");
  await page.waitForFunction(
    ({ id, top }) => Math.abs(document.getElementById(id).getBoundingClientRect().top - top) < 2,
    place,
  );
  assert.equal(new URL(page.url()).search, "");

  // The key can be switched off, and stays so on the next page.
  const setting = page.getByLabel("Press / to go to the search");
  const pressed = async () => {
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("/");
    return page.evaluate("document.activeElement.id");
  };
  await setting.uncheck();
  assert.notEqual(await pressed(), "query");
  await page.reload();
  assert.equal(await setting.isChecked(), false);
  assert.notEqual(await pressed(), "query");
  assert.equal(await page.locator("#query").getAttribute("aria-keyshortcuts"), null);
  // With a key: after the reload the page scrolls to its place, and a click beside a moving box changes nothing.
  await setting.press("Space");
  assert.equal(await setting.isChecked(), true);
  assert.equal(await pressed(), "query");

  await page.locator("#query").fill("no such words");
  await page.waitForFunction(() => document.querySelector("#found").textContent === "Not found");
  assert.ok(await page.locator("#next").isDisabled());
  await page.locator("#query").fill("");

  // A link to a moment, and the page at that moment.
  await page.evaluate("scrollTo(0, 0)");
  const moment = page.locator("a.moment").nth(5);
  const name = await moment.getAttribute("aria-label");
  await moment.focus();
  await moment.press("Enter");
  await moment.press("Enter");
  await page.waitForFunction(() => document.querySelector("#said").textContent === "Link copied");
  const shared = await page.evaluate("navigator.clipboard.readText()");
  assert.match(shared, /\/watch\/video_site\/lamp-warden\?t=\d+$/);
  const start = shared.split("=").pop();
  const opened = await open(browser);
  await opened.page.goto(shared);
  assert.equal(new URL(opened.page.url()).hash, `#t${start}`);
  await opened.page.waitForFunction((id) => {
    const { top, bottom } = document.getElementById(id).getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  }, `t${start}`);
  await assertAccessible(opened.page, "moment");
  await screenshot(opened.page, "moment");
  assertClean(opened.activity);
  await opened.context.close();
  await page.waitForFunction(() => document.querySelector("#said").textContent === "");
  assert.deepEqual([await moment.textContent(), await moment.getAttribute("aria-label")], ["#", name]);

  // A selection as a quotation.
  assert.equal(await page.locator("#quote").isVisible(), false);
  await page.evaluate(() => {
    const node = document.querySelector("#words p > span:last-child").firstChild;
    getSelection().setBaseAndExtent(node, 4, node, 10);
  });
  await page.locator("#quote").click();
  await page.waitForFunction(() => document.querySelector("#said").textContent === "Quotation copied");
  const quotation = await page.evaluate("navigator.clipboard.readText()");
  assert.match(quotation, /^“warden”\n— The lamp & the <b>warden<\/b>, LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord, 0:00\nhttp.*\?t=0$/);
  await page.evaluate("getSelection().removeAllRanges()");

  // Every format, downloaded and copied: the same text. Safari permits the clipboard only in the click itself.
  await page.evaluate(() => {
    const { clipboard } = navigator;
    let isClick = false;
    addEventListener("click", () => {
      isClick = true;
      setTimeout(() => (isClick = false));
    }, true);
    for (const name of ["write", "writeText"]) {
      const original = clipboard[name].bind(clipboard);
      clipboard[name] = (data) => (isClick ? original(data) : Promise.reject(new Error("not in the click")));
    }
  });
  await page.evaluate("scrollTo(0, 0)");
  await page.locator(".keep summary").click();
  await assertAccessible(page, "menu");
  await screenshot(page, "menu");
  const rows = await page.locator(".keep li").all();
  assert.equal(rows.length, 7);
  for (const [index, [ending, begins]] of [["txt", /^title: The lamp[^]*\nauthor: LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord\nurl: https:[^]*\n\nThe warden/], ["md", /^---\n[^]*LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord[^]*\n---\n[^]*# The lamp/], ["srt", /^1\r?\n00:00:00/], ["vtt", /^WEBVTT\n\nNOTE\ntitle: The lamp[^]*LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord/], ["json", /^\{[^]*LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord/]].entries()) {
    const pending = page.waitForEvent("download");
    await rows[index].locator("a").click();
    const download = await pending;
    assert.equal(download.suggestedFilename(), `The-lamp-the-b-warden-b.${ending}`);
    const text = readFileSync(await download.path(), "utf8");
    assert.match(text, begins);
    const copy = rows[index].locator("button");
    await copy.click();
    await page.waitForFunction((button) => button.textContent.startsWith("Copied"), await copy.elementHandle());
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), text.replaceAll("\r\n", "\n"));
  }
  const pending = page.waitForEvent("download");
  await rows[5].locator("a").click();
  const word = await pending;
  assert.equal(word.suggestedFilename(), "The-lamp-the-b-warden-b.docx");
  const archive = readFileSync(await word.path());
  for (const part of ["PK", "LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord", "The warden trims the wick"]) assert.ok(archive.includes(part), part);
  const pendingPdf = page.waitForEvent("download");
  await rows[6].locator("a").click();
  const pdf = await pendingPdf;
  assert.equal(pdf.suggestedFilename(), "The-lamp-the-b-warden-b.pdf");
  assert.ok(readFileSync(await pdf.path()).includes("%PDF-"));
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".keep").getAttribute("open"), null);

  await readChapters(page);
  await page.goto(LONG);

  // The first Tab stop is the skip link, which moves the focus to the content.
  await page.reload();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate("document.activeElement.id"), "content");
  assertClean(activity);
  await context.close();

  // Without scripts, reading and downloading work, and controls that need scripts are hidden.
  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(LONG);
  assert.ok(await plain.page.getByText("The warden trims the wick").first().isVisible());
  assert.equal(await plain.page.locator("#search").isVisible(), false);
  await plain.page.locator(".keep summary").click();
  assert.equal(await plain.page.locator("[data-copy]").first().isVisible(), false);
  assert.ok(await plain.page.getByRole("link", { name: "Download as SubRip" }).isVisible());
  for (const width of [560, 768, 1024, 1440]) {
    await plain.page.setViewportSize({ width, height: 900 });
    const menu = await plain.page.locator(".keep ul").boundingBox();
    assert.ok(menu.x >= 0 && menu.x + menu.width <= width, `the menu is at ${menu.x} px of ${width}`);
  }

  // Links to moments lead there, although heights change while the browser scrolls; and on a phone the sign of a
  // shared moment covers no time.
  await plain.page.setViewportSize({ width: 360, height: 740 });
  await plain.page.goto(`${LONG}?t=3000`);
  const target = plain.page.locator("#words p:target");
  let y;
  for (let last = null; y !== last; ) {
    last = y;
    await plain.page.waitForTimeout(1000);
    ({ y } = await target.boundingBox());
  }
  assert.ok(y > 0 && y < 740, `the moment is at ${y} px`);
  const [clock, sign] = [await target.locator(".time").boundingBox(), await target.locator(".moment").boundingBox()];
  assert.ok(sign.y >= clock.y + clock.height || sign.x >= clock.x + clock.width, "the sign covers the time");
  await screenshot(plain.page, "moment-phone");
  assertClean(plain.activity);

  // A page that opens with a search: on a phone the text does not move.
  // Links to other languages lead to the same place.
  const phone = await open(browser, { viewport: { width: 390, height: 844 } });
  await phone.page.addInitScript(countShifts);
  await phone.page.goto(`${LONG}?q=lantern`, { waitUntil: "networkidle" });
  await phone.page.locator("#hits summary").waitFor();
  const shifted = await phone.page.evaluate("shifted");
  assert.ok(shifted < 0.01, `layout shift of ${shifted}`);
  await phone.page.locator("#hits summary").click();
  await phone.page.locator("#hits li a").first().waitFor();
  await screenshot(phone.page, "matches-phone");
  await phone.page.keyboard.press("Escape");
  await phone.page.evaluate("location.hash = 't600'");
  await phone.page.locator("footer.site a[hreflang=de]").click();
  await phone.page.waitForURL(/\?q=lantern&hl=de#t\d+$/);
  await phone.page.waitForFunction(() => /^\d+ von \d+$/.test(document.querySelector("#found").textContent));
  assertClean(phone.activity);
  await phone.context.close();

  // A missing page returns an HTML error page.
  const lost = await open(browser);
  for (const path of ["/nothing/here", "/watch/nowhere/7", "/checkout/none"]) {
    assert.equal((await lost.page.goto(path)).status(), 404);
    await assertAccessible(lost.page, path);
  }
  await lost.page.goto("/nothing/here");
  await screenshot(lost.page, "error");
  await lost.page.getByRole("link", { name: "Paste the link of another video" }).click();
  assert.equal(lost.page.url(), `${BASE}/`);
  assertClean(lost.activity, ["404"]);
});
