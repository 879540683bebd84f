//! Settings of the pages: links of the operator, and what search engines may list.

use anyhow::{Result, ensure};
use tempfile::TempDir;

use super::harness::{ServerFixture, run_ok, verbatim};

/// Archives one sentence for a video.
fn import(data: &TempDir, link: &str, language: &str) -> Result<()> {
    let file = data.path().join("captions.vtt");
    std::fs::write(&file, "WEBVTT\n\n00:00.000 --> 00:01.000\nOne sentence.\n")?;
    let file = file.display().to_string();
    let arguments = ["import", &file, "--video", link, "--lang", language];
    run_ok(verbatim(data.path(), &arguments), b"").map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn sitemap_lists_archived_transcripts_that_are_not_withdrawn() -> Result<()> {
    let data = TempDir::new()?;
    for (link, language) in
        [("lamp-warden", "en"), ("lamp-warden", "de"), ("lamp-keepme", "en"), ("gone-lamp-0", "en")]
    {
        import(&data, link, language)?;
    }
    run_ok(verbatim(data.path(), &["archive", "withdraw", "gone-lamp-0"]), b"")?;
    let server = ServerFixture::start(&data, &[("VERBATIM_PAGES__INDEX", "transcripts")])?;
    let index = server.get("/sitemap.xml").await?.text();
    ensure!(index.matches("<sitemap>").count() == 2 && index.contains("/sitemaps/1.xml</loc>"), "{index}");
    for file in ["0.xml", "2.xml", "-1.xml", "1", "x.xml", "18446744073709551616.xml", "..%2Fsite.xml"] {
        ensure!(server.get(&format!("/sitemaps/{file}")).await?.status == 404, "{file}");
    }
    let files = [server.get("/sitemaps/site.xml").await?.text(), server.get("/sitemaps/1.xml").await?.text()];
    let sitemap = files.concat();
    ensure!(server.get("/sitemaps/1.xml").await?.text() == files[1], "the second response differs");
    for (path, count) in [
        ("/watch/video_site/lamp-warden</loc><lastmod>", 1),
        ("/watch/video_site/lamp-keepme</loc>", 1),
        ("gone-lamp-0", 0),
        ("/docs</loc>", 1),
        ("/docs/guides/errors</loc>", 1),
    ] {
        ensure!(sitemap.matches(path).count() == count, "{path}: {sitemap}");
    }
    let robots = server.get("/robots.txt").await?.text();
    ensure!(!robots.contains("/watch/") && robots.contains("Sitemap: "), "{robots}");
    let page = server.get("/watch/video_site/lamp-warden").await?.text();
    ensure!(!page.contains("noindex") && page.contains("<link rel=\"canonical\""), "{page}");
    ensure!(server.get("/watch/video_site/gone-lamp-0").await?.text().contains("noindex"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_links_of_operator_and_can_be_unlisted() -> Result<()> {
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_PAGES__INDEX", "none"),
        ("VERBATIM_PAGES__TERMS_URL", "https://example.org/terms?a=1&b=2"),
        ("VERBATIM_PAGES__CONTACT_URL", "mailto:help@example.org"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let page = server.get("/").await?.text();
    for part in
        ["href=\"https://example.org/terms?a=1&amp;b=2\"", "href=\"mailto:help@example.org\"", "noindex"]
    {
        ensure!(page.contains(part), "{part}: {page}");
    }
    ensure!(!page.contains(">Privacy<"), "{page}");
    ensure!(server.get("/robots.txt").await?.text() == "User-agent: *\nDisallow: /\n");
    ensure!(server.get("/sitemap.xml").await?.status == 404);
    Ok(())
}
