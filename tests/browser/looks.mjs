// Screenshots of the pages for review: light and dark, desktop and phone, print, right to left.

import { assertAccessible, assertClean, screenshot, open, play } from "./walk.mjs";

const { LONG, HEBREW, CLIP, UNWRITTEN } = process.env;
const DESKTOP = { viewport: { width: 1200, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const SMALL = { viewport: { width: 320, height: 640 } };

await play(async (browser) => {
  const pages = [["home", "/"], ["transcript", LONG], ["hebrew", HEBREW], ["clip", CLIP], ["button", UNWRITTEN]];
  for (const [screen, size] of [["desktop", DESKTOP], ["phone", PHONE], ["small", SMALL]]) {
    for (const colorScheme of ["light", "dark"]) {
      const { context, page, activity } = await open(browser, { ...size, colorScheme, reducedMotion: "reduce" });
      for (const [name, path] of pages) {
        await page.goto(path, { waitUntil: "networkidle" });
        await assertAccessible(page, `${name} ${screen} ${colorScheme}`);
        await screenshot(page, `${name}-${screen}-${colorScheme}`);
      }
      assertClean(activity);
      await context.close();
    }
  }
  const { page } = await open(browser, DESKTOP);
  await page.goto(HEBREW);
  await page.emulateMedia({ media: "print" });
  await screenshot(page, "hebrew-print");
  await page.goto(LONG);
  await screenshot(page, "transcript-print");
});
