// Searching in a transcript of four hours: no task keeps the page from responding.

import { assertClean, assert, open, play } from "./walk.mjs";

const { FOUR_HOURS } = process.env;
// A task that is longer keeps the page from responding, in milliseconds.
const LONG_TASK_MS = 50;
// Each search is a separate task.
const SEARCHES = [["a", /^1 of 2000\+$/], ["lantern", /^1 of 480$/], ["THE LOG SAYS", /^1 of 480$/], ["xylophone", /^Not/]];

await play(async (browser) => {
  const { page, activity } = await open(browser);
  await page.goto(FOUR_HOURS, { waitUntil: "networkidle" });
  await browser.startTracing(page, { categories: ["toplevel", "blink.user_timing"] });
  await page.evaluate(() => performance.mark("search"));
  for (const [text, found] of SEARCHES) {
    await page.locator("#query").fill(text);
    await page.locator("#found").getByText(found).waitFor();
  }
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("#found").textContent === "");
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const mark = traceEvents.find(({ name, cat }) => name === "search" && cat.includes("user_timing"));
  const isOfPage = ({ pid, tid, ts }) => pid === mark.pid && tid === mark.tid && ts >= mark.ts;
  // `tdur` is the processor time of the thread: on a busy machine other programs delay a task.
  const tasks = traceEvents.filter((event) => event.name.endsWith("RunTask") && isOfPage(event)).map(({ tdur }) => tdur / 1000);
  assert.ok(tasks.filter((task) => task > 1).length >= SEARCHES.length, `the trace has the searches: ${tasks}`);
  assert.deepEqual(tasks.filter((task) => task > LONG_TASK_MS), [], "tasks over 50 ms");
  assertClean(activity);
});
