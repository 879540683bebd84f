// Shared by all browser tests: the browser, pages that record requests, and accessibility checks.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { BASE, TOOLS } = process.env;
const require = createRequire(`${TOOLS}/`);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = `${TOOLS}/looks`;
mkdirSync(SCREENSHOTS, { recursive: true });

export { BASE, assert };

// Runs a test in a new browser, and closes the browser.
export async function play(test) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
  });
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

// Asserts that no other host was requested, and that only the expected errors occurred.
export function assertClean({ requests, errors }, expected = []) {
  const external = requests.filter((url) => !url.startsWith(BASE));
  assert.deepEqual(external, [], "requests to other hosts");
  assert.deepEqual(errors.filter((text) => !expected.some((part) => text.includes(part))), [], "browser errors");
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
