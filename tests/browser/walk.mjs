// What the stories share: the browser, a page that is watched, and the looks for barriers.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { BASE, TOOLS } = process.env;
const require = createRequire(`${TOOLS}/`);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const LOOKS = `${TOOLS}/looks`;
mkdirSync(LOOKS, { recursive: true });

export { BASE, assert };

// Plays a story in a browser of its own, and ends it.
export async function play(story) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
  });
  try {
    await story(browser);
  } finally {
    await browser.close();
  }
}

// A page that notes every request and every complaint of the browser.
export async function open(browser, options = {}) {
  const context = await browser.newContext({ baseURL: BASE, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const seen = { requests: [], complaints: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.complaints.push(message.text());
  });
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  return { context, page, seen };
}

// Nothing was asked of another host, and the browser complained of nothing but these.
export function alone({ requests, complaints }, expected = []) {
  const elsewhere = requests.filter((url) => !url.startsWith(BASE));
  assert.deepEqual(elsewhere, [], "requests to other hosts");
  assert.deepEqual(complaints.filter((text) => !expected.some((part) => text.includes(part))), [], "complaints");
}

// No barrier that axe knows of, also among what is only good practice.
export async function accessible(page, where) {
  const found = await page.evaluate(`${AXE}; axe.run(document, { resultTypes: ["violations"] })`);
  const told = found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(told, [], where);
}

// A picture to be looked at; and nothing on it is wider than the screen.
export async function look(page, name, { whole = false } = {}) {
  const [wide, screen] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
  assert.ok(wide <= screen, `${name} is ${wide} pixels wide on a screen of ${screen}`);
  await page.screenshot({ path: `${LOOKS}/${name}.png`, fullPage: whole });
}
