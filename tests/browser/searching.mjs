// The search page: instant results, links to moments, by keyboard, without scripts, and on a narrow screen.

import { assertAccessible, assertClean, assert, screenshot, open, play } from "./walk.mjs";

// The index is built in the background.
async function waitForIndex(page) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    await page.goto("/search?q=lantern");
    if ((await page.locator(".hits > li").count()) > 0) return;
    await page.waitForTimeout(250);
  }
  throw new Error("the index is not built");
}

await play(async (browser) => {
  const { page, activity } = await open(browser);
  await waitForIndex(page);
  await page.goto("/");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Search" }).click();
  await page.waitForURL("**/search");
  await assertAccessible(page, "empty search");

  // Results appear while the query is typed, and the address follows.
  const said = await page.locator("#said").elementHandle();
  await page.getByRole("searchbox").pressSequentially("counts the secon");
  await page.locator(".results").getByText("No archived transcript matches.").waitFor();
  // The region of the announcement is that of the page before.
  const announced = () => said.evaluate((region) => region.isConnected && region.role === "status" && region.textContent);
  assert.equal(await announced(), "No archived transcript matches.");
  assert.equal(await page.getByRole("status").count(), 1);
  await page.getByRole("searchbox").pressSequentially("ds");
  await page.locator(".hits > li").first().waitFor();
  assert.match(await announced(), /^Videos: /);
  assert.match(page.url(), /q=counts\+the\+seconds/);
  const marks = await page.locator(".moments li").first().locator("mark").allTextContents();
  assert.deepEqual(new Set(marks.map((mark) => mark.toLowerCase())), new Set(["counts", "the", "seconds"]));
  assert.match(await page.title(), /^counts the seconds/);
  await assertAccessible(page, "results");
  await screenshot(page, "search-results");

  // The results of an earlier query go with it; an error takes their place, and one Chinese letter is enough.
  const searchbox = page.getByRole("searchbox");
  const gone = () => page.locator(".results").waitFor({ state: "detached" });
  for (const text of ["", "x"]) {
    await searchbox.fill("lantern");
    await page.locator(".hits > li").first().waitFor();
    await searchbox.fill(text);
    await gone();
  }
  await searchbox.fill("灯");
  await page.locator(".results").getByText("No archived transcript matches.").waitFor();
  const limited = '<title>Search</title><main><p class="error" role="alert">Too many searches.</p></main>';
  await page.route("**/search?*", (route) => route.fulfill({ status: 429, contentType: "text/html", body: limited }));
  await searchbox.fill("wick");
  await page.getByText("Too many searches.").waitFor();
  assert.equal(await page.locator(".results").count(), 0);
  await page.unroute("**/search?*");

  // Without a connection nothing is shown in place of the new results.
  await searchbox.fill("lantern");
  await page.locator(".hits > li").first().waitFor();
  await page.context().setOffline(true);
  await searchbox.fill("wick");
  await page.getByText("The connection was lost.").waitFor();
  assert.equal(await page.locator(".results").count(), 0);
  await page.context().setOffline(false);
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator(".hits > li").first().waitFor();

  // Filters of the address apply to the next query.
  await page.goto("/search?q=lantern&lang=de&sort=date");
  await searchbox.fill("counts the seconds");
  await page.waitForURL(/q=counts.*lang=de&sort=date$/);
  await page.goto("/search?q=counts+the+seconds");

  // The page in another language has the query that was typed.
  await page.goto("/search");
  await searchbox.fill("lantern");
  await page.locator(".hits > li").first().waitFor();
  await page.getByRole("link", { name: "Deutsch" }).click();
  await page.waitForURL(/hl=de/);
  assert.equal(new URL(page.url()).searchParams.get("q"), "lantern");
  assert.equal(await searchbox.inputValue(), "lantern");
  await page.goto("/search?q=counts+the+seconds");

  // A time opens the transcript at the moment.
  const time = page.locator(".moments a").first();
  const text = await time.textContent();
  await time.click();
  await page.waitForURL("**/watch/**");
  assert.match(page.url(), /#t\d+$/);
  assert.ok(await page.getByRole("heading", { level: 1 }).isVisible(), text);

  // A match in a machine translation leads to its words.
  await page.goto("/search?q=phare");
  await page.locator(".hits h2 a").click();
  await page.waitForURL(/\/watch\/.*translated=true&q=phare/);
  await page.getByText("1 of 1").waitFor();
  await page.getByText("Le phare veille sur la mer.").waitFor();

  // A suggestion is a link to its results.
  await page.goto("/search?q=lantren");
  await page.getByRole("link", { name: "lantern" }).click();
  await page.locator(".hits > li").first().waitFor();
  assertClean(activity, ["429", "ERR_INTERNET_DISCONNECTED"]);
});

await play(async (browser) => {
  for (const [colorScheme, width] of [["light", 320], ["dark", 320], ["dark", 1280]]) {
    const { page, activity } = await open(browser, {
      colorScheme, javaScriptEnabled: colorScheme === "dark", viewport: { width, height: 900 },
    });
    await page.goto("/search?q=lantern+OR+fog");
    if (colorScheme === "light") {
      // Without scripts the form works.
      await page.getByRole("searchbox").fill('"the log says" -walrus');
      await page.getByRole("button", { name: "Search" }).click();
      await page.waitForURL(/walrus/);
    } else {
      await assertAccessible(page, `search ${colorScheme} ${width}`);
    }
    assert.ok((await page.locator(".hits > li").count()) > 0);
    await screenshot(page, `search-${colorScheme}-${width}`, { whole: true });
    assertClean(activity);
  }
});
