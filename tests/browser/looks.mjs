// The pages in light and dark, on a phone, on paper and from right to left, as pictures to be looked at.

import { accessible, alone, look, open, play } from "./walk.mjs";

const { LONG, HEBREW, CLIP, UNWRITTEN } = process.env;
const DESK = { viewport: { width: 1200, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const SMALL = { viewport: { width: 320, height: 640 } };

await play(async (browser) => {
  const pages = [["home", "/"], ["transcript", LONG], ["hebrew", HEBREW], ["clip", CLIP], ["button", UNWRITTEN]];
  for (const [screen, size] of [["desk", DESK], ["phone", PHONE], ["small", SMALL]]) {
    for (const colorScheme of ["light", "dark"]) {
      const { context, page, seen } = await open(browser, { ...size, colorScheme, reducedMotion: "reduce" });
      for (const [name, path] of pages) {
        await page.goto(path, { waitUntil: "networkidle" });
        await accessible(page, `${name} ${screen} ${colorScheme}`);
        await look(page, `${name}-${screen}-${colorScheme}`);
      }
      alone(seen);
      await context.close();
    }
  }
  const { page } = await open(browser, DESK);
  await page.goto(HEBREW);
  await page.emulateMedia({ media: "print" });
  await look(page, "hebrew-print");
  await page.goto(LONG);
  await look(page, "transcript-print");
});
