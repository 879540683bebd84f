// The documentation: quick start, samples in the remembered language, copying, and the form that tries a lookup; also
// without scripts.

import { assertClean, assert, screenshot, open, play } from "./walk.mjs";

await play(async (browser) => {
  const { context, page, activity } = await open(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto("/docs");
  await page.getByRole("link", { name: "Quick start" }).first().click();
  await page.waitForURL("**/docs/guides/quick-start");
  // The samples of all steps change to the language that is selected.
  const opened = () => page.$$eval(".sample[open] > summary", (all) => all.map((summary) => summary.textContent));
  assert.deepEqual([...new Set(await opened())], ["curl"]);
  await page.locator(".sample summary", { hasText: "Rust" }).last().click();
  assert.deepEqual([...new Set(await opened())], ["Rust"]);
  await screenshot(page, "samples");
  await page.goto("/docs/getTranscript");
  assert.deepEqual(await opened(), ["Rust"]);
  assert.deepEqual(await context.cookies(), []);

  const block = page.locator(".sample[open] .code").first();
  await block.getByRole("button", { name: "Copy" }).click();
  await block.getByRole("button", { name: "Copied" }).waitFor();
  assert.match(await page.evaluate("navigator.clipboard.readText()"), /reqwest::Client::new\(\)/);

  // The response is shown as text.
  await page.getByRole("button", { name: "Send without a key" }).click();
  const response = page.locator("#console-response");
  await response.getByRole("status").getByText("200").waitFor();
  assert.match(await response.locator("code").textContent(), /"available": true[^]*The warden trims the wick/);
  await page.getByLabel("Link of a video").fill("<b>nothing</b>");
  await page.getByRole("button", { name: "Send without a key" }).click();
  await response.getByRole("status").getByText("400").waitFor();
  assert.equal(await response.locator("b").count(), 0);
  await screenshot(page, "console");
  assertClean(activity, ["400"]);
  await context.close();

  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto("/docs/getTranscript");
  await plain.page.locator(".sample summary", { hasText: "Python" }).click();
  assert.ok(await plain.page.getByText("import urllib.parse").isVisible());
  assert.equal(await plain.page.getByRole("button", { name: "Copy" }).count(), 0);
  await plain.page.getByRole("button", { name: "Send without a key" }).click();
  await plain.page.waitForURL("**/api/transcript?**");
  assert.ok((await plain.page.content()).includes("The warden trims the wick"));
  // The response has no icon.
  assertClean(plain.activity, ["404"]);
});
