// Questions about the video: with the script and its challenge, and without scripts.

import { assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

const { LONG } = process.env;
const QUESTION = "How does she clean a lantern?";

await play(async (browser) => {
  const { context, page, activity } = await open(browser);
  await page.goto(LONG);
  assert.ok(!activity.requests.some((url) => /altcha|question\./.test(url)), "the challenge was loaded before the question");
  assert.deepEqual(await context.cookies(), []);
  await page.getByText("Ask this video").click();
  await page.getByLabel("Your question").fill(QUESTION);
  await page.keyboard.press("Enter");
  const answer = page.locator("#answer");
  const marker = answer.locator("a").first();
  await marker.waitFor({ timeout: 60_000 });
  assert.match(await answer.textContent(), /A lantern is cleaned from the top to the bottom.*\[\d+:\d\d\]/s);
  await assertAccessible(page, "answer");
  await screenshot(page, "answer");
  assert.equal((await context.cookies())[0].name, "verbatim_visitor");
  // A marker leads to its paragraph.
  const id = (await marker.getAttribute("href")).slice(1);
  await marker.click();
  await page.waitForFunction((id) => {
    const { top, bottom } = document.getElementById(id).getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  }, id);
  assert.equal(new URL(page.url()).hash, `#${id}`);

  // A question that the transcript does not answer.
  await page.evaluate("scrollTo(0, 0)");
  await page.getByLabel("Your question").fill("<img src=x onerror=alert(1)> xylophones?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await answer.getByText("The transcript does not answer this question.").waitFor({ timeout: 60_000 });
  assert.match(await answer.getByRole("link", { name: "Watch the video" }).getAttribute("href"), /^https:\/\/www\.youtube\.com\//);

  // An answer is inserted once, and stays when it breaks off.
  const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const sentences = event("sentence", { text: "One [0:05]. " }) + event("sentence", { text: "Two." });
  await page.evaluate(() => {
    const count = (records) => records.flatMap(({ addedNodes }) => [...addedNodes]).filter(({ dir }) => dir === "auto").length;
    new MutationObserver((records) => (inserted += count(records))).observe(document.querySelector("#answer"), { childList: true });
  });
  for (const [last, error] of [[event("error", { detail: "Try later." }), "Try later."], ["", "could not be answered"]]) {
    await page.route("**/ask", (route) => route.fulfill({ contentType: "text/event-stream", body: sentences + last }));
    await page.evaluate("globalThis.inserted = 0");
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await answer.getByText(error).waitFor({ timeout: 60_000 });
    assert.match(await answer.textContent(), /^One \[0:05\]\. Two\./);
    assert.equal(await page.evaluate("inserted"), 1);
    await page.unroute("**/ask");
  }
  assertClean(activity);

  // A limit of the day is shown again without another challenge.
  const detail = "Used up.";
  await page.route("**/ask", (route) => route.fulfill({ status: 429, contentType: "application/json", body: JSON.stringify({ detail }) }));
  for (const challenges of [1, 0]) {
    activity.requests.length = 0;
    await answer.evaluate((element) => element.replaceChildren());
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await answer.getByText(detail).waitFor({ timeout: 60_000 });
    assert.equal(activity.requests.filter((url) => url.endsWith("/challenge")).length, challenges);
  }
  await page.unroute("**/ask");

  // Without a connection the page stays.
  await page.goto(LONG);
  await page.getByText("Ask this video").click();
  await page.getByLabel("Your question").fill(QUESTION);
  await page.route("**/altcha.*", (route) => route.abort());
  await page.keyboard.press("Enter");
  await answer.getByText("could not be answered").waitFor();
  assert.equal(new URL(page.url()).pathname, LONG);
  await page.unroute("**/altcha.*");

  // Without the files of its challenge, such as after an upgrade of the server, the form loads the page with the answer.
  activity.errors.length = 0;
  await page.route("**/altcha.*", (route) => route.fulfill({ status: 404, body: "" }));
  await page.goto(LONG);
  await page.getByText("Ask this video").click();
  await page.getByLabel("Your question").fill(QUESTION);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/ask$/);
  await marker.waitFor();
  assertClean(activity, ["404"]);
  await context.close();

  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(`${LONG}?hl=de`);
  await plain.page.getByText("Frage an dieses Video").click();
  await plain.page.getByLabel("Ihre Frage").fill(QUESTION);
  await plain.page.getByRole("button", { name: "Fragen" }).click();
  const link = plain.page.locator("#answer a").first();
  await link.waitFor();
  assert.match(await plain.page.locator("#answer").textContent(), /A lantern is cleaned/);
  await screenshot(plain.page, "answer-without-scripts");
  await link.click();
  assert.match(plain.page.url(), /\/ask\?hl=de#t\d+$/);
  assertClean(plain.activity);
});
