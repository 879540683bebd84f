// An account in the browser: register, mail, key, buy in the sandbox, statement, sign out, sign in; then without scripts.

import {
  BASE, RECEIPT, SIGN_IN, VERIFY, assertAccessible, assertClean, assert, mailedLink as link, screenshot, open, play,
} from "./walk.mjs";

// Long enough to need a second line on a small screen.
const MAIL = "ann.of.the.lighthouse.at.the.end.of.the.world@example.org";
const SMALL = { viewport: { width: 320, height: 640 } };

// Every page in both schemes, at full width and on a small screen.
async function look(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `${name} ${colorScheme}`);
    await screenshot(page, `account-${name}-${colorScheme}`);
  }
  const size = page.viewportSize();
  await page.setViewportSize(SMALL.viewport);
  await screenshot(page, `account-${name}-small`);
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: "light" });
}

await play(async (browser) => {
  const { page, context, activity } = await open(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto("/register");
  assert.deepEqual(await context.cookies(), [], "no cookie before sign-in");
  await look(page, "register");
  await page.getByLabel("Mail address").fill(MAIL);
  await page.getByRole("button", { name: "Create my account" }).click();
  await page.getByRole("heading", { name: "Check your inbox" }).waitFor();
  await page.reload();
  await look(page, "sent");

  await page.goto(await link(VERIFY));
  await look(page, "verify");
  await page.getByRole("button", { name: "Show my API key" }).click();
  const key = (await page.locator("#key").textContent()).trim();
  assert.match(key, /^vba_/);
  await look(page, "key");
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), key);
  const [cookie] = await context.cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === "Lax");

  await page.getByRole("link", { name: "See your credits and your usage" }).click();
  await page.getByText("200 of 200 left").waitFor();
  await look(page, "overview");
  await page.getByRole("button", { name: "Buy 2,000 credits" }).click();
  await page.getByText("This is a test.").waitFor();
  await page.getByRole("button", { name: "Pretend to pay $20.00" }).click();
  await page.getByRole("heading", { name: "Paid" }).waitFor();
  await page.getByText("You now have 2,200 credits.").waitFor();
  await look(page, "paid");
  const receipt = await link(RECEIPT);
  const order = receipt.split("/").pop();
  await page.goto(receipt);
  await page.getByText("$20.00").first().waitFor();
  await look(page, "receipt");
  // On paper it has no links to other pages.
  await page.emulateMedia({ media: "print" });
  assert.ok(await page.getByText("Seller").isVisible());
  assert.equal(await page.locator("main a:visible").count(), 0);
  await page.emulateMedia({ media: "screen" });
  await page.getByRole("link", { name: "Statement" }).click();
  await page.getByText("+2,000").waitFor();
  await look(page, "statement");
  // A job that is complete at once, whose webhook cannot be delivered.
  const headers = { authorization: `Bearer ${key}` };
  const callback = "https://hooks.example.invalid/verbatim";
  const started = await page.request.post("/api/v1/jobs", {
    headers,
    data: { urls: ["https://example.org/"], callback_url: callback },
  });
  const { job_id: job } = await started.json();
  for (let attempts = 0; attempts === 0; ) {
    const log = await page.request.get(`/api/v1/jobs/${job}/deliveries`, { headers });
    assert.equal(log.status(), 200);
    attempts = (await log.json()).events[0].attempts.length;
    // Requests count toward the rate limit of the account.
    await page.waitForTimeout(1000);
  }
  await page.getByRole("link", { name: "Jobs" }).first().click();
  await page.getByText("Completed").waitFor();
  await look(page, "jobs");
  await page.getByRole("table").getByRole("link").first().click();
  await page.getByText("the host name could not be resolved").first().waitFor();
  await look(page, "job");
  for (const language of ["de", "ar"]) {
    await page.goto(`/account/jobs/${job}?hl=${language}`);
    await look(page, `job-${language}`);
  }
  await page.goto("/account/jobs?hl=en");
  // On a phone, the credits of a job are beside its date.
  const wide = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.$eval(".scroll", (region) => region.scrollWidth <= region.clientWidth), "the table of jobs is too wide");
  await page.setViewportSize(wide);
  for (const name of ["API keys", "Orders", "Sessions"]) {
    await page.getByRole("navigation", { name: "Pages of your account" }).getByRole("link", { name }).click();
    await page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
    await look(page, name.toLowerCase().replace(" ", "-"));
  }
  // A second key with a name.
  await page.goto("/account/keys");
  await page.getByLabel("Name of the key").fill("Laptop <b>");
  await page.getByRole("button", { name: "Create an API key" }).click();
  const laptop = (await page.locator("#key").textContent()).trim();
  assert.match(laptop, /^vba_/);
  assert.notEqual(laptop, key);
  for (const language of ["de", "ar", "en"]) {
    await page.goto(`/account/keys?hl=${language}`);
    for (const summary of await page.locator("main summary").all()) await summary.click();
    await look(page, `api-keys-two-${language}`);
  }
  await page.goto("/account/delete");
  await look(page, "delete");
  // Every page in every language, in one scheme after the other, on a small screen.
  await page.setViewportSize(SMALL.viewport);
  const pages = ["", "/keys", "/statement", "/orders", `/orders/${order}`, "/jobs", `/jobs/${job}`, "/sessions", "/delete"];
  for (const language of ["en", "de", "es", "fr", "ja", "ar"]) {
    for (const [index, path] of pages.entries()) {
      await page.emulateMedia({ colorScheme: index % 2 === 0 ? "light" : "dark" });
      await page.goto(`/account${path}?hl=${language}`);
      await assertAccessible(page, `${path} ${language}`);
      await screenshot(page, `account-page-${index}-${language}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.goto("/account");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await look(page, "sign-in");
  assert.deepEqual(await context.cookies(), []);
  assertClean(activity);

  // The same without scripts.
  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto("/sign-in");
  await plain.page.getByLabel("Mail address").fill(MAIL);
  await plain.page.getByRole("button", { name: "Email me a link" }).click();
  await plain.page.goto(await link(SIGN_IN));
  await plain.page.getByRole("button", { name: "Sign in" }).click();
  await plain.page.getByText("2,200 of 2,200 left").waitFor();
  await plain.page.goto("/account/keys");
  const laptopSection = plain.page.locator("section", { has: plain.page.getByRole("heading", { name: "Laptop <b>" }) });
  await laptopSection.getByText("Revoke this key").first().click();
  await laptopSection.getByRole("button", { name: "Revoke this key" }).click();
  await plain.page.getByText("This is your only key").waitFor({ state: "attached" });
  await plain.page.getByText("Replace this key").first().click();
  await plain.page.getByRole("button", { name: "Replace this key" }).click();
  const replaced = (await plain.page.locator("#key").textContent()).trim();
  assert.match(replaced, /^vba_/);
  assert.notEqual(replaced, key);
  assert.equal(await plain.page.getByRole("button", { name: "Copy" }).count(), 0);
  assert.ok(plain.page.url().startsWith(BASE));
  assertClean(plain.activity);
});
process.exit(0);
