// Shared by all browser tests: the browser, pages that record requests, mails, and accessibility checks.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { BASE, TOOLS } = process.env;
const require = createRequire(`${TOOLS}/`);
const { chromium, firefox } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = `${TOOLS}/looks`;
mkdirSync(SCREENSHOTS, { recursive: true });

export { BASE, assert };

const launchChromium = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
  });

// The system's Firefox over WebDriver BiDi, with these preferences.
export const launchFirefox = (firefoxUserPrefs = {}) =>
  firefox.launch({
    channel: "moz-firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    firefoxUserPrefs,
  });

// Waits for the next mail, which the Rust test passes as a line of JSON, and returns the link in it.
let lines;
export async function mailedLink(pattern) {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const { value } = await lines.next();
  const text = JSON.parse(value).replaceAll(/=\r?\n/g, "").replaceAll("=3D", "=");
  const found = text.match(pattern);
  assert.ok(found, `no link in ${text}`);
  return found[0];
}
export const VERIFY = /https?:\/\/\S+\/api\/v1\/verify\?token=[\w-]+/;
export const RECEIPT = /https?:\/\/\S+\/account\/orders\/order-\w+/;
export const SIGN_IN = /https?:\/\/\S+\/sign-in\/confirm\?token=[\w-]+/;

// The platform's player, and a page of these tests in place of it.
export const PLAYER = "https://www.youtube-nocookie.com";
// The protocol of the player, as far as the page uses it.
export const STAND_IN = `<!doctype html><html lang="en"><title>Player</title><body><p>Player</p><script>
const parameters = new URL(location).searchParams;
const send = (info) => parent.postMessage(JSON.stringify({ event: "infoDelivery", info }), parameters.get("origin"));
globalThis.commands = [];
addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.event === "listening") send({ currentTime: Number(parameters.get("start")) });
  if (message.event !== "command") return;
  commands.push(message.func === "seekTo" ? message.func + " " + message.args[0] : message.func);
  if (message.func === "seekTo") send({ currentTime: message.args[0] });
});
</script></body></html>`;

// The stories that run in both browsers.
export const isFirefox = process.env.BROWSER === "firefox";

// Runs a test in a new browser, and closes the browser.
export async function play(test, launch = isFirefox ? launchFirefox : launchChromium) {
  const browser = await launch();
  try {
    await test(browser);
  } finally {
    await browser.close();
  }
}

// Opens a page that records all requests and all browser errors and warnings.
export async function open(browser, options = {}) {
  const context = await browser.newContext({ baseURL: BASE, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const activity = { requests: [], errors: [] };
  page.on("request", (request) => activity.requests.push(request.url()));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) activity.errors.push(message.text());
  });
  page.on("pageerror", (error) => activity.errors.push(String(error)));
  return { context, page, activity };
}

// Playwright adds the style `body {}` before a screenshot, which the policy of the pages blocks in Firefox.
const SCREENSHOT_STYLE = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=";

// Asserts that no other host was requested, and that only the expected errors occurred.
export function assertClean({ requests, errors }, expected = []) {
  const external = requests.filter((url) => !url.startsWith(BASE));
  assert.deepEqual(external, [], "requests to other hosts");
  const known = [...expected, SCREENSHOT_STYLE];
  assert.deepEqual(errors.filter((text) => !known.some((part) => text.includes(part))), [], "browser errors");
}

// Asserts that axe finds no violation, best practices included.
export async function assertAccessible(page, where) {
  const found = await page.evaluate(`${AXE}; axe.run(document, { resultTypes: ["violations"] })`);
  const violations = found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(violations, [], where);
}

// Takes a screenshot for review, and asserts that the page is not wider than the screen.
export async function screenshot(page, name, { whole = false } = {}) {
  const [wide, screen] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
  assert.ok(wide <= screen, `${name} is ${wide} px wide on a screen of ${screen} px`);
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: whole });
}
