// The documentation: quick start, samples in the remembered language, copying, and the form that tries a lookup; also
// without scripts.

import { assertAccessible, assertClean, assert, isFirefox, screenshot, open, play } from "./walk.mjs";

await play(async (browser) => {
  const { context, page, activity } = await open(browser);
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

  // Answers to questions on other pages have a box; the fields of responses do not.
  const limits = await page.$$eval("details.answer p.limits", (all) => all.map((one) => getComputedStyle(one).padding));
  assert.deepEqual([...new Set(limits)], ["0px"]);

  const block = page.locator(".sample[open] .code").first();
  await block.getByRole("button", { name: "Copy" }).click();
  await block.getByRole("button", { name: "Copied" }).waitFor();
  const link = page.getByLabel("Link of a video");
  const example = await link.inputValue();
  await link.fill("");
  await page.keyboard.press("ControlOrMeta+V");
  assert.match(await link.inputValue(), /reqwest::Client::new\(\)/);
  await link.fill(example);

  // The response is shown as text.
  await page.getByRole("button", { name: "Send without a key" }).click();
  const response = page.locator("#console-response");
  await response.getByRole("status").getByText("200").waitFor();
  assert.match(await response.locator("code").textContent(), /"available": true[^]*The warden trims the wick/);
  // A video that needs a key: what to do instead.
  await link.fill("https://youtu.be/not-there-0");
  await page.getByRole("button", { name: "Send without a key" }).click();
  await response.getByRole("status").getByText("Open its watchUrl in a browser").waitFor();
  // A label and its field are on one line.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const [label, field] = await page.$$eval(".console label:has(select), .console select", (all) => all.map((one) => one.offsetHeight));
  assert.ok(label < field + 16, `the label is ${label} px high`);
  await page.setViewportSize(size);
  await link.fill("<b>nothing</b>");
  await page.getByRole("button", { name: "Send without a key" }).click();
  await response.getByRole("status").getByText("400").waitFor();
  assert.equal(await response.locator("b").count(), 0);
  // A response that arrives after that to a later request is not shown.
  let release;
  const later = new Promise((resolve) => (release = resolve));
  await page.route("**/api/transcript?*first*", async (route) => {
    await later;
    await route.fulfill({ json: { first: true } }).catch(() => {});
  });
  await link.fill("first");
  await page.getByRole("button", { name: "Send without a key" }).click();
  await response.getByRole("status").getByText("Sending").waitFor();
  await link.fill(example);
  await page.getByRole("button", { name: "Send without a key" }).click();
  await response.getByRole("status").getByText("200").waitFor();
  release();
  await page.unroute("**/api/transcript?*first*");
  await page.evaluate(() => new Promise((done) => setTimeout(done, 200)));
  assert.match(await response.locator("code").textContent(), /The warden trims the wick/);
  await screenshot(page, "console");
  await assertAccessible(page, "console");
  assertClean(activity, ["400"]);
  await context.close();

  // Without scripts: Firefox has a setting for the whole browser, with which its other stories run.
  if (isFirefox) return;
  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto("/docs/getTranscript");
  await plain.page.locator(".sample summary", { hasText: "Python" }).click();
  assert.ok(await plain.page.getByText("import urllib.parse").isVisible());
  assert.equal(await plain.page.getByRole("button", { name: "Copy" }).count(), 0);
  await plain.page.getByRole("button", { name: "Send without a key" }).click();
  await plain.page.waitForURL("**/api/transcript?**");
  assert.ok((await plain.page.content()).includes("The warden trims the wick"));
  assertClean(plain.activity);
});
