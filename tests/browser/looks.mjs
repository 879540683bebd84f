// Screenshots of the pages for review, and axe on each of them: light and dark, desktop and phone, each time in another
// language; then print, and letters of twice the size.

import { assert, assertAccessible, assertClean, screenshot, open, play } from "./walk.mjs";

const { LONG, HEBREW, CLIP, UNWRITTEN } = process.env;
const DESKTOP = { viewport: { width: 1200, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const SMALL = { viewport: { width: 320, height: 640 } };
// Every page is seen in every language, and at least three times in each colour scheme.
const LOOKS = [
  ["desktop", DESKTOP, "light", "en"],
  ["desktop", DESKTOP, "dark", "ar"],
  ["phone", PHONE, "light", "ja"],
  ["phone", PHONE, "dark", "fr"],
  ["small", SMALL, "light", "es"],
  ["small", SMALL, "dark", "de"],
  ["narrow", SMALL, "dark", "ar"],
];
const PAGES = [
  ["home", "/"],
  ["transcript", LONG],
  ["hebrew", HEBREW],
  ["clip", CLIP],
  ["button", UNWRITTEN],
  ["pricing", "/pricing"],
  ["search", "/search"],
  ["register", "/register"],
  ["sign-in", "/sign-in"],
  ["docs", "/docs"],
  ["operation", "/docs/getTranscript"],
  ["quick-start", "/docs/guides/quick-start"],
  ["errors", "/docs/guides/errors"],
  ["assistants", "/docs/guides/assistants"],
  ["webhooks", "/docs/guides/webhooks"],
  ["changelog", "/docs/guides/changelog"],
  ["order", "/checkout/none"],
  ["link", "/sign-in/confirm"],
  ["lost", "/nothing"],
];

await play(async (browser) => {
  for (const [screen, size, colorScheme, language] of LOOKS) {
    const { context, page, activity } = await open(browser, { ...size, colorScheme, reducedMotion: "reduce" });
    const places = new Set();
    for (const [name, path] of PAGES) {
      await page.goto(`${path}?hl=${language}`);
      assert.equal(await page.locator("html").getAttribute("lang"), language);
      await assertAccessible(page, `${name} ${screen} ${colorScheme} ${language}`);
      await screenshot(page, `${name}-${screen}-${colorScheme}`);
      places.add(await page.evaluate(() => JSON.stringify(document.querySelector(".masthead").getBoundingClientRect())));
    }
    assert.equal(places.size, 1, `the masthead moves: ${[...places].join(" ")}`);
    assertClean(activity, ["404", "400"]);
    await context.close();
  }
  // The scroll bar of a long transcript shows where the reader is, before the heights of its paragraphs are known.
  for (const size of [DESKTOP, PHONE, SMALL]) {
    const { context, page } = await open(browser, size);
    await page.goto(LONG);
    const height = () => page.evaluate("document.documentElement.scrollHeight");
    const estimated = await height();
    await page.$$eval("#words p", (all) => all.forEach((paragraph) => (paragraph.style.contentVisibility = "visible")));
    const ratio = estimated / (await height());
    assert.ok(ratio > 0.75 && ratio < 1.33, `${size.viewport.width} px: the estimated height is ${ratio} of the height`);
    // A touch screen has no key for the search.
    assert.equal(await page.locator("#shortcut").isVisible(), size !== PHONE);
    await context.close();
  }
  const { page } = await open(browser, DESKTOP);
  for (const [name, path] of PAGES) {
    await page.goto(path);
    await page.evaluate('document.documentElement.style.fontSize = "200%"');
    await screenshot(page, `${name}-large`);
  }
  // They fit a small phone.
  await page.setViewportSize({ width: 360, height: 740 });
  for (const [name, path] of PAGES) {
    await page.goto(path);
    await page.evaluate('document.documentElement.style.fontSize = "200%"');
    const width = await page.evaluate("document.documentElement.scrollWidth");
    assert.ok(width <= 360, `${name} is ${width} px wide`);
  }
  await page.setViewportSize(DESKTOP.viewport);
  await page.emulateMedia({ media: "print" });
  for (const [name, path] of [["hebrew", HEBREW], ["transcript", LONG]]) {
    await page.goto(path);
    await screenshot(page, `${name}-print`);
    for (const hidden of [".masthead", ".site", ".tools", ".questions", "#watch"]) {
      assert.equal(await page.locator(hidden).first().isVisible(), false, `${hidden} is printed`);
    }
    assert.ok(await page.locator(".source a").isVisible());
  }
});
