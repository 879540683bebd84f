// From an address to credits: register, the mail, the link, the key, an order, the sandbox.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { BASE, accessible, alone, assert, look, open, play } from "./walk.mjs";

const { OUTBOX } = process.env;

// The link in the one mail, once it is there.
async function link() {
  for (let tries = 0; tries < 600; tries += 1) {
    const mails = existsSync(OUTBOX) ? readdirSync(OUTBOX).filter((name) => name.endsWith(".eml")) : [];
    const text = mails.length ? readFileSync(`${OUTBOX}/${mails[0]}`, "utf8").replaceAll(/=\r?\n/g, "").replaceAll("=3D", "=") : "";
    const found = text.match(/https?:\/\/\S+\/api\/v1\/verify\?token=[\w-]+/);
    if (found) return found[0];
    await pause(100);
  }
  throw new Error("no mail came");
}

await play(async (browser) => {
  const { page, context, seen } = await open(browser);
  const registered = await context.request.post("/api/v1/register", { data: { email: "ann@example.org" } });
  assert.equal(registered.status(), 200);
  await page.goto(await link());
  await accessible(page, "the page of the link");
  await look(page, "verify");
  await page.getByRole("button", { name: "Show my API key" }).click();
  const key = (await page.locator(".key").textContent()).trim();
  assert.match(key, /^vba_/);
  await accessible(page, "the page of the key");
  await look(page, "key");

  const headers = { authorization: `Bearer ${key}` };
  const me = async () => (await (await context.request.get("/api/v1/me", { headers })).json()).credits_remaining;
  assert.equal(await me(), 200);
  const order = await context.request.post("/api/v1/buy-credits", { headers, data: { pack: "2k" } });
  await page.goto((await order.json()).checkout_url);
  assert.ok(await page.getByText("This is a test.").isVisible());
  await accessible(page, "the sandbox");
  await look(page, "sandbox");
  await page.getByRole("button", { name: "Pretend to pay $20.00" }).click();
  await page.getByRole("heading", { name: "Paid" }).waitFor();
  await accessible(page, "the paid order");
  await look(page, "paid");
  assert.equal(await me(), 2_200);
  assert.ok(page.url().startsWith(BASE));
  // Whoever opens the used link again is told so, in a page.
  assert.equal((await page.goto(await link())).status(), 200);
  await page.getByRole("button", { name: "Show my API key" }).click();
  await page.getByRole("heading", { name: "No API key" }).waitFor();
  await accessible(page, "the used link");
  alone(seen, ["400"]);
});
