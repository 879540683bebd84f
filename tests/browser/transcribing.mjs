// Transcribing a video: link, challenge, progress, transcript. The calling test lets the fake platform respond once this
// script has printed "look".

import { BASE, assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

const { LINK, SILENT } = process.env;

await play(async (browser) => {
  const { context, page, activity } = await open(browser);
  await page.goto("/");
  await assertAccessible(page, "front page");
  await page.getByLabel("Link of a video").fill("https://example.org/watch?v=1");
  await page.getByRole("button", { name: "Get the transcript" }).click();
  assert.ok(await page.getByRole("alert").isVisible());
  assert.equal(await page.getByLabel("Link of a video").inputValue(), "https://example.org/watch?v=1");
  await assertAccessible(page, "invalid link");
  await page.getByLabel("Link of a video").fill(LINK);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/watch\/video_site\//);

  // The attribution tag is preserved on all further pages.
  await page.goto(`${page.url()}?src=mcp_other`);
  await assertAccessible(page, "video without a transcript");
  await screenshot(page, "unwritten");
  const before = activity.requests.length;
  assert.ok(!activity.requests.some((url) => url.includes("altcha")), "the challenge was loaded before the click");

  // Records all progress messages, in order.
  await page.evaluate(() => {
    globalThis.messages = [];
    const stage = document.querySelector("#stage");
    new MutationObserver(() => messages.push(stage.textContent)).observe(stage, { childList: true });
  });
  await page.getByRole("button", { name: "Transcribe this video" }).click();
  await page.waitForFunction(() => messages.some((text) => text.includes("captions")), null, { timeout: 60_000 });
  const messages = await page.evaluate("messages");
  assert.equal(messages[0], "Your browser is solving the challenge.");
  assert.ok(messages.includes("Your browser has passed the check."), messages.join(" | "));
  await assertAccessible(page, "progress");
  await screenshot(page, "progress");
  console.log("look");
  await page.getByRole("searchbox").waitFor({ timeout: 60_000 });
  assert.ok(page.url().endsWith("?src=mcp_other"), page.url());
  assert.equal(await page.locator("h1").textContent(), "How a tide mill works");
  assert.ok(await page.getByText("Twice a day the sea").first().isVisible());
  await assertAccessible(page, "new transcript");
  const cookie = (await context.cookies())[0];
  assert.equal(cookie.name, "verbatim_visitor");
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === "/watch/", JSON.stringify(cookie));
  assert.ok(activity.requests.length > before);
  assert.equal(await page.evaluate("document.cookie"), "");

  // A failure shows a message and the button again. The limit of this visitor is one transcript a day.
  await page.goto(SILENT);
  await page.getByRole("button", { name: "Transcribe this video" }).click();
  await page.getByRole("alert").waitFor({ timeout: 60_000 });
  assert.match(await page.getByRole("alert").textContent(), /new transcript for today/);
  assert.equal(await page.evaluate("document.activeElement.id"), "transcribe");
  await assertAccessible(page, "limit reached");
  await screenshot(page, "refusal");
  assertClean(activity, ["400"]);
  await context.close();

  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(SILENT);
  assert.ok(await plain.page.locator("noscript p").isVisible());
  assert.equal(await plain.page.getByRole("button").count(), 0);
  await screenshot(plain.page, "without-scripts");
  assertClean(plain.activity);
  assert.ok(BASE);
});
