// The player beside the words, with a page of this test in place of the platform's player.

import { BASE, PLAYER, STAND_IN, assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

const { LONG, CHAPTERS } = process.env;
await play(async (browser) => {
  for (const [screen, size] of [
    ["desktop", { width: 1280, height: 800 }], ["tablet", { width: 900, height: 800 }], ["small", { width: 320, height: 640 }],
  ]) {
    const { context, page, activity } = await open(browser, { viewport: size, reducedMotion: "reduce" });
    const requested = [];
    await context.route(`${PLAYER}/**`, async (route) => {
      requested.push({ address: new URL(route.request().url()), referrer: (await route.request().allHeaders()).referer });
      await route.fulfill({ contentType: "text/html", body: STAND_IN });
    });
    const responses = [];
    page.on("requestfinished", (request) => responses.push(request));
    await page.goto(LONG, { waitUntil: "networkidle" });

    // Before the click: few requests, few bytes, and none to the platform.
    const sizes = await Promise.all(responses.map((request) => request.sizes()));
    const bytes = sizes.reduce((sum, one) => sum + one.responseHeadersSize + one.responseBodySize, 0);
    assert.ok(responses.length <= 5 && bytes <= 40_000, `${responses.length} requests with ${bytes} bytes`);
    assert.equal(requested.length, 0);
    assertClean(activity);

    await page.getByRole("button", { name: "Watch here" }).click();
    const frame = page.frameLocator("#player iframe");
    await frame.locator("body").waitFor();
    assert.equal(requested.length, 1);
    const [{ address, referrer }] = requested;
    assert.equal(address.pathname, "/embed/lamp-warden");
    assert.equal(referrer, `${BASE}/`);
    const now = (id) => page.waitForFunction((wanted) => document.querySelector("p.now")?.id === wanted, id);
    await now("t0");
    await assertAccessible(page, `player ${screen}`);
    await screenshot(page, `player-${screen}`);

    // The words do not cover the menu of downloads.
    await page.locator(".keep summary").click();
    const pending = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download as SubRip" }).click();
    assert.match((await pending).suggestedFilename(), /\.srt$/);
    await page.keyboard.press("Escape");

    // Times seek in the player, and the words follow.
    const ids = await page.evaluate(() => [...document.querySelectorAll("#words p")].map(({ id }) => id));
    const before = page.url();
    await page.locator(`#${ids[6]} a.time`).click();
    await now(ids[6]);
    assert.equal(page.url(), before);
    const player = page.frames().find((one) => one.url().startsWith(PLAYER));
    assert.deepEqual(await player.evaluate("commands"), [`seekTo ${ids[6].slice(1)}`, "playVideo"]);
    await page.waitForFunction((id) => {
      const { top, bottom } = document.getElementById(id).getBoundingClientRect();
      // A paragraph that is taller than the rest of the screen begins below the player.
      const below = top - document.querySelector("#player").getBoundingClientRect().bottom;
      return (top > 0 && bottom < innerHeight) || (below > 0 && below < 16);
    }, ids[6]);

    // Switched off, the highlight moves and the page does not.
    await page.getByLabel("Follow the video").uncheck();
    const place = await page.evaluate("scrollY");
    await player.evaluate((seconds) => send({ currentTime: seconds }), Number(ids[20].slice(1)) + 1);
    await now(ids[20]);
    assert.equal(await page.evaluate("scrollY"), place);

    // Messages of others, and nonsense of the player, change nothing.
    await page.evaluate(() => postMessage(JSON.stringify({ info: { currentTime: 0 } }), "*"));
    await player.evaluate(() => {
      for (const data of ["{", "null", "7", '{"info":{"currentTime":"x"}}', '{"info":null}']) parent.postMessage(data, "*");
    });
    await player.evaluate((seconds) => send({ currentTime: seconds }), Number(ids[21].slice(1)));
    await now(ids[21]);
    await page.getByRole("button", { name: "Close the player" }).click();
    assert.equal(await page.locator("iframe").count(), 0);
    assert.equal(await page.locator("p.now").count(), 0);
    assert.equal(await page.evaluate("document.activeElement.id"), "watch");
    await page.getByRole("button", { name: "Watch here" }).click();
    await now("t0");

    // A match is in the middle of what the bar and the player leave of the screen, unless the page begins or ends there.
    await page.locator("#query").fill("lantern");
    await page.waitForFunction(() => / of /.test(document.querySelector("#found").textContent));
    for (let match = 0; match < 20; match += 1) await page.keyboard.press("Enter");
    await page.waitForFunction(() => {
      const [{ top, bottom, left }] = [...CSS.highlights.get("here")][0].getClientRects();
      const bars = [...document.querySelectorAll(".tools, #player")].map((bar) => bar.getBoundingClientRect());
      const covered = Math.max(0, ...bars.filter((bar) => bar.left <= left && left <= bar.right).map((bar) => bar.bottom));
      return Math.abs((top + bottom) / 2 - (covered + innerHeight) / 2) < 2;
    });
    // In one column the bar is above the screen, and the first letter scrolls to it: the nearest match is still that of
    // the reader's place, and Escape returns there.
    if (screen === "tablet") {
      const count = Number((await page.locator("#found").textContent()).split(" ").pop());
      await page.locator("#query").fill("");
      await page.waitForFunction(() => document.querySelector("#found").textContent === "");
      await page.evaluate("document.activeElement.blur(), scrollTo(0, document.body.scrollHeight / 2)");
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const middle = await page.evaluate(() => {
        const { bottom } = document.querySelector("#player").getBoundingClientRect();
        const first = [...document.querySelectorAll("#words p")].find((p) => p.getBoundingClientRect().bottom > bottom);
        return { id: first.id, top: first.getBoundingClientRect().top };
      });
      await page.keyboard.press("/");
      await page.keyboard.type("lantern");
      await page.waitForURL(/q=lantern$/);
      await page.waitForFunction(() => /^\d+ of/.test(document.querySelector("#found").textContent));
      const nearest = Number((await page.locator("#found").textContent()).split(" ")[0]);
      assert.ok(nearest > count / 4 && nearest < count, `${nearest} of ${count}`);
      await page.keyboard.press("Escape");
      await page.waitForFunction(
        ({ id, top }) => Math.abs(document.getElementById(id).getBoundingClientRect().top - top) < 2,
        middle,
      );
    }
    // The player starts at the moment of the address, and the page follows to it.
    await page.goto(`${LONG}#${ids[6]}`);
    await page.reload();
    await page.getByRole("button", { name: "Watch here" }).click();
    await now(ids[6]);
    assert.equal(requested.at(-1).address.searchParams.get("start"), ids[6].slice(1));

    // The second paragraph of a second has no id, and seeks there, too.
    await page.goto(CHAPTERS);
    await page.getByRole("button", { name: "Watch here" }).click();
    await now("t0");
    await page.locator("#words p:not([id]) a.time").click();
    await now("t60");
    const seeking = page.frames().find((one) => one.url().startsWith(PLAYER));
    assert.deepEqual(await seeking.evaluate("commands"), ["seekTo 60", "playVideo"]);
    assert.deepEqual(activity.errors, []);
    await context.close();
  }

  const plain = await open(browser, { javaScriptEnabled: false });
  await plain.page.goto(LONG);
  assert.equal(await plain.page.locator("#watch").isVisible(), false);
  assertClean(plain.activity);
});
