// Transcribing a video: link, challenge, progress, transcript. The calling test lets the fake platform respond once this
// script has printed "look".

import { BASE, assertAccessible, assertClean, assert, isFirefox, screenshot, open, play } from "./walk.mjs";

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

  const late = await context.newPage();
  // The page language and the parameters are preserved, also if the result names another video.
  await late.goto(`${SILENT}?lang=de`);
  await late.getByRole("link", { name: "Deutsch" }).click();
  await late.waitForURL(/\?hl=de&lang=de$/);
  if (!isFirefox) {
    // A file that this server does not have: the page is older than the server.
    await late.route("**/altcha.*", (route) => route.fulfill({ status: 404, body: "" }));
    await late.locator("#transcribe").click();
    await late.getByText("Laden Sie diese Seite neu und versuchen Sie es noch einmal.").waitFor({ timeout: 60_000 });
    await late.unroute("**/altcha.*");
    await late.reload();
    // A request that does not reach the server starts nothing.
    await late.route("**/transcribe?*", (route) => route.abort());
    await late.locator("#transcribe").click();
    await late.getByText("Laden Sie diese Seite neu und versuchen Sie es noch einmal.").waitFor({ timeout: 60_000 });
    await late.unroute("**/transcribe?*");
    const result = { available: true, watchUrl: `${BASE}/watch/video_site/other-one-0` };
    const body = `event: result\ndata: ${JSON.stringify(result)}\n\n`;
    await late.route("**/transcribe?*", (route) => route.fulfill({ contentType: "text/event-stream", body }));
    await late.locator("#transcribe").click();
    await late.waitForURL(/\/other-one-0\?hl=de&lang=de$/, { timeout: 60_000 });
  }

  // A page that is opened while a transcript is left.
  await late.goto(SILENT);
  assert.ok(await late.getByText("New transcripts left today: 1 of 1.").isVisible());

  // Records all progress messages, in order. Their region is there before the click, for screen readers.
  await page.evaluate(() => {
    globalThis.messages = [];
    const said = document.querySelector("#said");
    if (said.closest("[hidden]")) throw new Error("the region is hidden");
    new MutationObserver(() => messages.push(said.textContent)).observe(said, { childList: true });
  });
  await page.getByRole("button", { name: "Transcribe this video" }).click();
  await page.waitForFunction(() => messages.some((text) => text.includes("captions")), null, { timeout: 60_000 });
  const messages = await page.evaluate("messages");
  assert.equal(messages[0], "Your browser is solving the challenge.");
  assert.ok(messages.includes("Your browser has passed the check."), messages.join(" | "));
  const shown = () => document.querySelector("#stage").textContent === document.querySelector("#said").textContent;
  assert.ok(await page.evaluate(shown), "the text on the screen is another one");
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
  await late.getByRole("button", { name: "Transcribe this video" }).click();
  await late.getByRole("alert").waitFor({ timeout: 60_000 });
  assert.match(await late.getByRole("alert").textContent(), /used today's free transcripts/);
  assert.equal(await late.evaluate("document.activeElement.id"), "transcribe");
  await assertAccessible(late, "refused");
  await screenshot(late, "refusal");

  // From then on a page says so before the check, and what to do next.
  await page.goto(SILENT);
  assert.ok(await page.getByText("You've used today's free transcripts (1 a day).").isVisible());
  assert.equal(await page.getByRole("button").count(), 0);
  await assertAccessible(page, "limit reached");
  await screenshot(page, "limit");
  await page.getByRole("link", { name: "See what credits for the API cost" }).click();
  await page.getByRole("heading", { name: "Credit packs" }).waitFor();
  assertClean(activity, ["400"]);
  await context.close();

  // Without scripts: Firefox has a setting for the whole browser, with which its other stories run.
  if (isFirefox) return;
  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(SILENT);
  assert.ok(await plain.page.locator("noscript p").isVisible());
  assert.equal(await plain.page.getByRole("button").count(), 0);
  await screenshot(plain.page, "without-scripts");
  assertClean(plain.activity);
  assert.ok(BASE);
});
