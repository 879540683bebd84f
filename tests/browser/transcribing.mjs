// A person pastes a link, passes the check, watches the progress and reads. Whoever runs this opens the platform's gate
// when "look" is printed.

import { BASE, accessible, alone, assert, look, open, play } from "./walk.mjs";

const { LINK, SILENT } = process.env;

await play(async (browser) => {
  const { context, page, seen } = await open(browser);
  await page.goto("/");
  await accessible(page, "the front page");
  await page.getByLabel("Link of a video").fill("https://example.org/watch?v=1");
  await page.getByRole("button", { name: "Get the transcript" }).click();
  assert.ok(await page.getByRole("alert").isVisible());
  assert.equal(await page.getByLabel("Link of a video").inputValue(), "https://example.org/watch?v=1");
  await accessible(page, "a link that names no video");
  await page.getByLabel("Link of a video").fill(LINK);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/watch\/video_site\//);

  // The attribution tag stays, whatever follows.
  await page.goto(`${page.url()}?src=mcp_other`);
  await accessible(page, "a video without a transcript");
  await look(page, "unwritten");
  const before = seen.requests.length;
  assert.ok(!seen.requests.some((url) => url.includes("altcha")), "the check was loaded before it was asked for");

  // All that the page says, in order.
  await page.evaluate(() => {
    globalThis.said = [];
    const stage = document.querySelector("#stage");
    new MutationObserver(() => said.push(stage.textContent)).observe(stage, { childList: true });
  });
  await page.getByRole("button", { name: "Transcribe this video" }).click();
  await page.waitForFunction(() => said.some((text) => text.includes("captions")), null, { timeout: 60_000 });
  const said = await page.evaluate("said");
  assert.equal(said[0], "Your browser does its calculation.");
  assert.ok(said.includes("Your browser has passed the check."), said.join(" | "));
  await accessible(page, "while the work goes on");
  await look(page, "progress");
  console.log("look");
  await page.getByRole("searchbox").waitFor({ timeout: 60_000 });
  assert.ok(page.url().endsWith("?src=mcp_other"), page.url());
  assert.equal(await page.locator("h1").textContent(), "How a tide mill works");
  assert.ok(await page.getByText("Twice a day the sea").first().isVisible());
  await accessible(page, "the new transcript");
  const cookie = (await context.cookies())[0];
  assert.equal(cookie.name, "verbatim_visitor");
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === "/watch/", JSON.stringify(cookie));
  assert.ok(seen.requests.length > before);
  assert.equal(await page.evaluate("document.cookie"), "");

  // What there is not is told, and the button is there again. This visitor has one a day.
  await page.goto(SILENT);
  await page.getByRole("button", { name: "Transcribe this video" }).click();
  await page.getByRole("alert").waitFor({ timeout: 60_000 });
  assert.match(await page.getByRole("alert").textContent(), /new transcript of today/);
  assert.equal(await page.evaluate("document.activeElement.id"), "transcribe");
  await accessible(page, "a refusal");
  await look(page, "refusal");
  alone(seen, ["400"]);
  await context.close();

  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(SILENT);
  assert.ok(await plain.page.locator("noscript p").isVisible());
  assert.equal(await plain.page.getByRole("button").count(), 0);
  await look(plain.page, "without-scripts");
  alone(plain.seen);
  assert.ok(BASE);
});
