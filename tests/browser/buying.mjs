// Buying credits: registration, mail, verification link, key, order, sandbox.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { BASE, assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

const { OUTBOX } = process.env;

// Waits for the mail, and returns its link.
async function link() {
  for (let tries = 0; tries < 600; tries += 1) {
    const mails = existsSync(OUTBOX) ? readdirSync(OUTBOX).filter((name) => name.endsWith(".eml")) : [];
    // A receipt follows the purchase.
    const texts = mails.map((mail) => readFileSync(`${OUTBOX}/${mail}`, "utf8").replaceAll(/=\r?\n/g, "").replaceAll("=3D", "="));
    const found = texts.join("\n").match(/https?:\/\/\S+\/api\/v1\/verify\?token=[\w-]+/);
    if (found) return found[0];
    await pause(100);
  }
  throw new Error("no mail arrived");
}

await play(async (browser) => {
  const { page, context, activity } = await open(browser);
  const registered = await context.request.post("/api/v1/register", { data: { email: "ann@example.org" } });
  assert.equal(registered.status(), 200);
  await page.goto(await link());
  await assertAccessible(page, "verification page");
  await screenshot(page, "verify");
  await page.getByRole("button", { name: "Show my API key" }).click();
  const key = (await page.locator("#key").textContent()).trim();
  assert.match(key, /^vba_/);
  await assertAccessible(page, "key page");
  await screenshot(page, "key");

  const headers = { authorization: `Bearer ${key}` };
  const me = async () => (await (await context.request.get("/api/v1/me", { headers })).json()).credits_remaining;
  assert.equal(await me(), 200);
  const order = await context.request.post("/api/v1/buy-credits", { headers, data: { pack: "2k" } });
  await page.goto((await order.json()).checkout_url);
  assert.ok(await page.getByText("This is a test.").isVisible());
  await assertAccessible(page, "sandbox page");
  await screenshot(page, "sandbox");
  await page.getByRole("button", { name: "Pretend to pay $20.00" }).click();
  await page.getByRole("heading", { name: "Paid" }).waitFor();
  await assertAccessible(page, "paid order");
  await screenshot(page, "paid");
  assert.equal(await me(), 2_200);
  assert.ok(page.url().startsWith(BASE));
  // A used link opens an error page.
  assert.equal((await page.goto(await link())).status(), 200);
  await page.getByRole("button", { name: "Show my API key" }).click();
  await page.getByRole("heading", { name: "No API key" }).waitFor();
  await assertAccessible(page, "used link");
  assertClean(activity, ["400"]);
});
