// The stories in Firefox: register, buy, sign in, create a key; read, share and open a moment, watch, ask; search; at 200 %
// zoom; without scripts.
//
// The other scripts check details in Chromium.

import {
  BASE, PLAYER, RECEIPT, SIGN_IN, STAND_IN, VERIFY, assertAccessible, assertClean, assert, launchFirefox, mailedLink,
  screenshot, open, play,
} from "./walk.mjs";

const { LONG } = process.env;
const WIDE = { viewport: { width: 1280, height: 800 } };

async function register(browser) {
  const { context, page, activity } = await open(browser, WIDE);
  await page.goto("/register");
  await page.getByLabel("Mail address").fill("ann@example.org");
  await page.getByRole("button", { name: "Create my account" }).click();
  await page.getByRole("heading", { name: "Check your inbox" }).waitFor();
  await page.goto(await mailedLink(VERIFY));
  await page.getByRole("button", { name: "Show my API key" }).click();
  const key = (await page.locator("#key").textContent()).trim();
  assert.match(key, /^vba_/);
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  await assertAccessible(page, "key in Firefox");
  await screenshot(page, "firefox-key");
  await page.getByRole("link", { name: "See your credits and your usage" }).click();
  await page.getByText("200 of 200 left").waitFor();
  await screenshot(page, "firefox-account");
  await page.getByRole("button", { name: "Buy 2,000 credits" }).click();
  await page.getByRole("button", { name: "Pretend to pay $20.00" }).click();
  await page.getByText("You now have 2,200 credits.").waitFor();
  await page.goto(await mailedLink(RECEIPT));
  await page.getByText("$20.00").first().waitFor();
  await page.getByRole("link", { name: "Statement" }).click();
  await page.getByText("+2,000").waitFor();
  await assertAccessible(page, "statement in Firefox");
  await page.goto("/account");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(await context.cookies(), []);
  assertClean(activity);
  await context.close();
  return key;
}

// By keyboard: without scripts, Playwright cannot wait until an element is ready for the mouse.
async function press(page, locator, text = "") {
  await locator.evaluate((element) => element.focus());
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

// The page that needs a session is shown after the mailed link.
async function signIn(page) {
  await page.goto("/account/keys");
  await page.waitForURL("**/sign-in?next=account/keys");
  await press(page, page.getByLabel("Mail address"), "ann@example.org");
  await page.waitForURL("**/sign-in/sent");
  await page.goto(await mailedLink(SIGN_IN));
  await press(page, page.getByRole("button", { name: "Sign in" }));
  await page.waitForURL("**/account/keys");
}

async function createKey(page, name, other) {
  await press(page, page.getByLabel("Name of the key"), name);
  await page.waitForURL("**/account/keys/create");
  const key = (await page.locator("#key").textContent()).trim();
  assert.match(key, /^vba_/);
  assert.notEqual(key, other);
  await page.goto("/account/keys");
  assert.ok(await page.getByRole("heading", { name }).isVisible());
}

async function read(browser) {
  const { context, page, activity } = await open(browser, WIDE);
  await page.goto(LONG);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.id"), "query");
  await page.keyboard.type("LANTERN");
  const found = page.locator("#found");
  await page.waitForURL(/q=LANTERN$/);
  await page.waitForFunction(() => document.querySelector("#found").textContent.startsWith("1 of "));
  const count = Number((await found.textContent()).split(" ").pop());
  assert.equal(await page.evaluate("CSS.highlights.get('found').size"), count);
  await page.keyboard.press("Enter");
  assert.equal(await found.textContent(), `2 of ${count}`);
  await screenshot(page, "firefox-search");
  await page.keyboard.press("Escape");

  // Share a moment, and open it.
  const moment = page.locator("a.moment").nth(5);
  const shared = new URL(await moment.getAttribute("href"), page.url());
  await moment.focus();
  await moment.press("Enter");
  await page.waitForFunction(() => document.querySelector("#said").textContent === "Link copied");

  // Several ranges in one paragraph are one quotation.
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text) => (globalThis.written = text);
    const node = document.querySelector("#words p > span:last-child").firstChild;
    getSelection().removeAllRanges();
    for (const [start, end] of [[0, 3], [4, 10]]) {
      const range = new Range();
      range.setStart(node, start);
      range.setEnd(node, end);
      getSelection().addRange(range);
    }
  });
  await page.locator("#quote").click();
  await page.waitForFunction(() => globalThis.written);
  assert.match(await page.evaluate("written"), /^“The warden”\n/);
  assertClean(activity);
  const opened = await open(browser, WIDE);
  await opened.page.goto(shared.href);
  const start = opened.page.url().split("#").pop();
  assert.match(start, /^t\d+$/);
  await opened.page.waitForFunction((id) => {
    const { top, bottom } = document.getElementById(id).getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  }, start);
  await assertAccessible(opened.page, "moment in Firefox");
  await screenshot(opened.page, "firefox-moment");
  assertClean(opened.activity);
  await opened.context.close();
  await context.close();
}

// The player beside the words, and a question with its challenge.
async function watch(browser) {
  const { context, page, activity } = await open(browser, WIDE);
  await context.route(`${PLAYER}/**`, (route) => route.fulfill({ contentType: "text/html", body: STAND_IN }));
  await page.goto(LONG);
  await page.getByRole("button", { name: "Watch here" }).click();
  const now = (id) => page.waitForFunction((wanted) => document.querySelector("p.now")?.id === wanted, id);
  await now("t0");
  const id = await page.evaluate("document.querySelectorAll('#words p')[6].id");
  await page.locator(`#${id} a.time`).click();
  await now(id);
  await screenshot(page, "firefox-player");
  await page.getByRole("button", { name: "Close the player" }).click();

  await page.evaluate("scrollTo(0, 0)");
  await page.getByText("Ask this video").click();
  await page.getByLabel("Your question").fill("How does she clean a lantern?");
  await page.keyboard.press("Enter");
  await page.locator("#answer a").first().waitFor({ timeout: 60_000 });
  assert.deepEqual(activity.errors.filter((text) => !text.includes("sha256-")), []);
  await context.close();
}

async function search(browser) {
  const { context, page, activity } = await open(browser, WIDE);
  // The index is built in the background.
  for (let attempt = 0; attempt < 200; attempt += 1) {
    await page.goto("/search?q=lantern");
    if ((await page.locator(".hits > li").count()) > 0) break;
    await page.waitForTimeout(250);
  }
  await page.goto("/search");
  await page.getByRole("searchbox").pressSequentially("counts the seconds");
  await page.locator(".hits > li").first().waitFor();
  await assertAccessible(page, "results in Firefox");
  await screenshot(page, "firefox-results");
  await page.locator(".moments a").first().click();
  await page.waitForURL("**/watch/**");
  assert.match(page.url(), /#t\d+$/);
  assertClean(activity);
  await context.close();
}

// At 200 % a screen of 1280 px is 640 px wide.
async function zoom(browser) {
  const size = { viewport: { width: 640, height: 480 }, deviceScaleFactor: 2 };
  const { context, page, activity } = await open(browser, size);
  for (const path of ["/", LONG, "/pricing", "/search", "/register", "/sign-in", "/docs", "/docs/guides/errors"]) {
    await page.goto(path);
    await screenshot(page, `firefox-zoom${path.replaceAll("/", "-")}`);
  }
  assertClean(activity);
  await context.close();
}

let key;
await play(async (browser) => {
  key = await register(browser);
  await read(browser);
  await watch(browser);
  await search(browser);
  await zoom(browser);
}, launchFirefox);

// The same without scripts, on a narrow screen.
await play(
  async (browser) => {
    const { page, activity } = await open(browser, { viewport: { width: 320, height: 640 } });
    await signIn(page);
    await createKey(page, "Laptop", key);
    assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen");
    assert.equal(await page.locator("[data-copy]:visible").count(), 0, "scripts run");
    await page.goto(LONG);
    assert.ok(await page.getByText("The warden trims the wick").first().isVisible());
    assert.equal(await page.locator("#search").isVisible(), false);
    await page.goto("/search");
    await press(page, page.getByRole("searchbox"), '"the log says" -walrus');
    await page.waitForURL(/walrus/);
    assert.ok((await page.locator(".hits > li").count()) > 0);
    assert.ok(page.url().startsWith(BASE));
    assertClean(activity);
  },
  () => launchFirefox({ "javascript.enabled": false }),
);
process.exit(0);
