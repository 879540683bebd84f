//! Tests of what all pages have in common, of the prices, and of the rules for search engines.

use std::{sync::Arc, time::Duration};

use axum::extract::{Path, State};
use http_body_util::BodyExt as _;
use transcript_core::{
    Clock as _,
    archive::Archive as _,
    engine::Transcripts,
    lookup::LookupOptions,
    video::{Platform, VideoId},
};

use crate::{
    config::PageIndex,
    page::site::Site,
    routes::indexing::{sitemap_file, transcripts_file},
    testing::{ARCHIVED, NEW, PaymentSetup, SILENT, SequentialRandom, ServiceFixture, request},
};

const BROWSER: (&str, &str) = ("accept", "text/html");

#[tokio::test]
async fn pages_have_one_frame() {
    let service = ServiceFixture::start().await;
    let watch = format!("/watch/video_site/{ARCHIVED}");
    for (target, status, root) in [
        ("/", 200, ""),
        ("/pricing", 200, ""),
        ("/docs", 200, ""),
        ("/docs/getTranscript", 200, "../"),
        ("/docs/guides/errors", 200, "../../"),
        ("/docs/guides/nothing", 404, "../../"),
        ("/nothing/here", 404, "../"),
        ("/docs/getNothing", 404, "../"),
        ("/checkout/none", 404, "../"),
        ("/api/v1/verify?token=x", 200, "../../"),
        ("/sign-in/confirm?token=a%2Fb", 200, "../"),
        ("/sign-in?next=account%2Forders", 200, ""),
        ("/register?next=pricing", 200, ""),
        ("/?url=https%3A%2F%2Fexample%2Eorg%2Fx", 400, ""),
        (&watch, 200, "../../"),
        (&format!("/watch/video_site/{NEW}"), 200, "../../"),
        ("/watch/nowhere/7", 404, "../../"),
    ] {
        let page = service.send(request("GET", target, &[BROWSER], "")).await;
        assert_eq!(page.status, status, "{target}");
        for part in [
            format!("<li><a href=\"{root}docs\""),
            format!("<li><a href=\"{root}pricing\""),
            "<footer class=\"site\">".to_owned(),
            format!("<li>Verbatim {}</li>", env!("CARGO_PKG_VERSION")),
            "<main id=\"content\" tabindex=\"-1\"".to_owned(),
        ] {
            assert!(page.text.contains(&part), "{target} {part}: {}", page.text);
        }
        assert!(!page.text.contains(">Search</a>") && page.text.contains(">Account</a>"), "{target}");
        // The page of a token is nothing without it, and that of a form leads elsewhere.
        let token = target.split_once('?').map(|(_, query)| format!("&amp;{query}")).unwrap_or_default();
        let german = format!("<a href=\"?hl=de{token}\" lang=\"de\" hreflang=\"de\">Deutsch</a>");
        assert!(page.text.contains(&german), "{target}: {}", page.text);
    }
}

#[tokio::test]
async fn page_language_follows_header_and_address() {
    let service = ServiceFixture::start().await;
    let german = service.send(request("GET", "/", &[("accept-language", "de-AT, en;q=0.5")], "")).await;
    assert!(german.text.contains("<html lang=\"de\">") && german.text.contains("Preise"), "{}", german.text);
    let varies: Vec<_> = german.headers.get_all("vary").iter().collect();
    assert!(varies.iter().any(|names| *names == "accept-language"), "{varies:?}");
    assert!(german.text.contains("<a href=\"pricing\">"), "{}", german.text);
    let arabic = service.get("/?hl=ar").await;
    assert!(arabic.text.contains("<html lang=\"ar\" dir=\"rtl\">"), "{}", arabic.text);
    assert!(arabic.text.contains("<a href=\"pricing?hl=ar\">"), "{}", arabic.text);
    let there = service.get(&format!("/?hl=ja&url=https://youtu.be/{NEW}?t=5")).await;
    assert_eq!(there.header("location"), Some(format!("watch/video_site/{NEW}?t=5&hl=ja").as_str()));
    // Cached pages of several languages are separate.
    let target = format!("/watch/video_site/{ARCHIVED}");
    for _ in 0..3 {
        for (query, words) in
            [("", "Copy or download"), ("?hl=fr", "Copier ou télécharger"), ("?hl=ja", "コピー")]
        {
            let page = service.get(&format!("{target}{query}")).await;
            assert!(page.text.contains(words) && page.text.contains("It is so"), "{query}: {}", page.text);
        }
    }
    let documentation = service.get("/docs?hl=ar").await;
    assert!(documentation.text.contains("<main id=\"content\" tabindex=\"-1\" lang=\"en\" dir=\"ltr\">"));
}

#[tokio::test]
async fn front_page_names_free_transcripts_of_visitors() {
    for (visitor_per_day, is_named) in [(2, true), (0, false)] {
        let options = LookupOptions { visitor_per_day, ..LookupOptions::default() };
        let page = ServiceFixture::with_options(options).await.get("/").await.text;
        let text = "available at once. New transcripts a day on this site, without an account: 2</p>";
        assert_eq!(
            (page.contains(text), page.contains("without an account")),
            (is_named, is_named),
            "{page}"
        );
    }
}

#[tokio::test]
async fn favicon_leads_to_icon() {
    let service = ServiceFixture::start().await;
    let response = service.get("/favicon.ico").await;
    let icon = response.header("location").unwrap();
    assert_eq!((response.status.as_u16(), icon.starts_with("assets/icon.")), (302, true), "{response:?}");
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    assert_eq!(service.get(&format!("/{icon}")).await.header("content-type"), Some("image/svg+xml"));
    // Apple's devices show no SVG.
    let page = service.get("/").await.text;
    let (_, link) = page.split_once("rel=\"apple-touch-icon\" href=\"").unwrap();
    let touch_icon = format!("/{}", link.split('"').next().unwrap());
    assert_eq!(service.get(&touch_icon).await.header("content-type"), Some("image/png"));
}

#[tokio::test]
async fn pricing_shows_packs_that_are_sold() {
    let sold = ServiceFixture::start().await.get("/pricing").await;
    assert!(sold.text.contains("<td>$12.00</td><td>$12.00</td>"), "{}", sold.text);
    assert!(sold.text.contains("<th scope=\"row\">starter</th>"), "{}", sold.text);
    assert!(!sold.text.contains("noindex"), "{}", sold.text);
    let service = ServiceFixture::with_payments(PaymentSetup::Nothing).await;
    let unsold = service.get("/pricing").await;
    assert!(
        unsold.text.contains("does not sell credits") && !unsold.text.contains("$12.00"),
        "{}",
        unsold.text
    );
}

/// Otherwise search engines list a page once for each language of its frame.
#[tokio::test]
async fn listed_pages_name_their_address_and_other_languages() {
    let service = ServiceFixture::start().await;
    let head = async |target: &str| {
        let page = service.get(target).await.text;
        page.split("</head>").next().unwrap_or_default().to_owned()
    };
    for (target, path, alternates) in [
        ("/", "", 7),
        ("/?hl=de", "?hl=de", 7),
        ("/pricing?hl=ja", "pricing?hl=ja", 7),
        ("/docs?hl=de", "docs", 0),
        ("/docs/getTranscript?hl=ja", "docs/getTranscript", 0),
        ("/docs/guides/errors", "docs/guides/errors", 0),
    ] {
        let head = head(target).await;
        for part in ["<link rel=\"canonical\" href", "<meta property=\"og:url\" content"] {
            let link = format!("{part}=\"https://v.example/{path}\">");
            assert!(head.contains(&link), "{target} {link}: {head}");
        }
        assert_eq!(head.matches("rel=\"alternate\"").count(), alternates, "{target}: {head}");
        assert_eq!(head.matches("<meta name=\"description\"").count(), 1, "{target}: {head}");
        assert!(!head.contains("description\" content=\"\""), "{target}: {head}");
    }
    let pricing = head("/pricing?hl=ja").await;
    for (language, address) in [("x-default", "pricing"), ("fr", "pricing?hl=fr")] {
        let link = format!("hreflang=\"{language}\" href=\"https://v.example/{address}\"");
        assert!(pricing.contains(&link), "{link}: {pricing}");
    }
    assert!(!head("/register").await.contains("canonical"));
}

#[tokio::test]
async fn robots_and_sitemap_list_the_site_by_default() {
    let service = ServiceFixture::start().await;
    let robots = service.get("/robots.txt").await;
    assert!(robots.text.contains("Disallow: /watch/\n"), "{}", robots.text);
    assert!(robots.text.ends_with("Sitemap: https://v.example/sitemap.xml\n"), "{}", robots.text);
    let index = service.get("/sitemap.xml").await;
    assert_eq!(index.header("content-type"), Some("application/xml; charset=utf-8"));
    let only = "<sitemap><loc>https://v.example/sitemaps/site.xml</loc></sitemap></sitemapindex>";
    assert!(index.text.ends_with(only) && index.text.matches("<sitemap>").count() == 1, "{}", index.text);
    let file = service.get("/sitemaps/site.xml").await;
    assert!(
        file.text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns="),
        "{}",
        file.text
    );
    assert!(file.text.contains("<url><loc>https://v.example/pricing</loc></url>"), "{}", file.text);
    for page in ["guides/errors", "getTranscript"] {
        let line = format!("<loc>https://v.example/docs/{page}</loc>");
        assert!(file.text.contains(&line), "{line}: {}", file.text);
    }
    assert!(!file.text.contains("/watch/"), "{}", file.text);
    assert_eq!(service.get("/sitemaps/1.xml").await.status, 404);
    assert!(service.get(&format!("/watch/video_site/{ARCHIVED}")).await.text.contains("noindex"));
}

/// A search engine may request one file of the sitemap only, and never the index.
#[tokio::test(start_paused = true)]
async fn sitemap_file_is_planned_again_after_an_hour() {
    let service = ServiceFixture::start().await;
    let app = service.app.clone().with_site(Site { index: PageIndex::Transcripts, ..Site::default() });
    let is_listed = async || {
        let response = sitemap_file(State(app.clone()), Ok(Path("1.xml".to_owned()))).await;
        assert_eq!(response.status(), 200);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&bytes).contains(ARCHIVED)
    };
    assert!(is_listed().await);
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    service.archive.withdraw(&video, true, service.clock.now()).await.unwrap();
    assert!(is_listed().await, "a plan is used for an hour");
    tokio::time::advance(Duration::from_secs(3_600)).await;
    // Calls on a runtime that has ended fail.
    let ended = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (archive, clock) = (Arc::clone(&service.archive), Arc::clone(&service.clock));
    let random = Arc::new(SequentialRandom::default());
    let unavailable = Transcripts::builder(archive, clock, random, ended.handle().clone()).build();
    ended.shutdown_background();
    for (file, status) in [("1.xml", 200), ("2.xml", 500)] {
        let response = transcripts_file(&unavailable, &app.sitemap, "https://v.example", file).await;
        assert_eq!(response.status(), status, "{file}");
    }
    assert!(!is_listed().await, "a withdrawn video is listed");
}

#[tokio::test]
async fn watch_page_shows_what_is_left_today() {
    let service =
        ServiceFixture::with_options(LookupOptions { visitor_per_day: 1, ..LookupOptions::default() }).await;
    let target = format!("/watch/video_site/{SILENT}");
    let left = service.get(&target).await;
    assert!(left.text.contains("New transcripts left today: 1 of 1."), "{}", left.text);
    assert!(left.header("set-cookie").is_none());
    let pressed = super::visitor::press(&service, NEW, None, "192.0.2.1").await;
    let cookie = super::visitor::cookie(&pressed);
    let used = service.send(request("GET", &target, &[("cookie", &cookie)], "")).await;
    assert!(used.text.contains("You've used today's free transcripts (1 a day)"), "{}", used.text);
    assert!(!used.text.contains("<button") && !used.text.contains("<script"), "{}", used.text);
    assert!(used.text.contains("href=\"../../pricing\""), "{}", used.text);
    assert!(used.text.contains("They do not raise the limit of this page."), "{}", used.text);
    // A forged cookie is that of a new visitor.
    for other in ["verbatim_visitor=x.y", "verbatim_visitor="] {
        let page = service.send(request("GET", &target, &[("cookie", other)], "")).await;
        assert!(page.text.contains("left today: 1 of 1."), "{other}: {}", page.text);
    }
    service.clock.advance(Duration::from_secs(24 * 3_600));
    let tomorrow = service.send(request("GET", &target, &[("cookie", &cookie)], "")).await;
    assert!(tomorrow.text.contains("left today: 1 of 1."), "{}", tomorrow.text);
}

#[tokio::test]
async fn pages_of_settings_are_compressed_and_have_tags() {
    let service = ServiceFixture::start().await;
    for (target, is_page) in [
        ("/", true),
        ("/pricing", true),
        ("/docs", true),
        ("/docs/getTranscript", true),
        ("/docs/guides/quick-start", true),
        ("/openapi.json", false),
        ("/llms.txt", false),
        ("/sitemaps/site.xml", false),
    ] {
        let plain = service.get(target).await;
        let tag = plain.header("etag").unwrap().to_owned();
        let again = service.send(request("GET", target, &[("if-none-match", &tag)], "")).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""), "{target}");
        let zipped = request("GET", target, &[("accept-encoding", "gzip"), ("if-none-match", &tag)], "");
        let (head, body) = service.http.answer(zipped, [192, 0, 2, 1].into()).await.into_parts();
        let bytes = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        assert_eq!(head.headers["content-encoding"], "gzip", "{target}");
        assert!(bytes.len() * 2 < plain.text.len(), "{target}: {} of {}", bytes.len(), plain.text.len());
        assert_eq!(plain.header("content-security-policy").is_some(), is_page, "{target}");
        assert_eq!(plain.header("access-control-allow-origin").is_some(), !is_page, "{target}");
    }
    assert!(service.get("/robots.txt").await.header("etag").is_some());
    // A page in another language is another body.
    for path in ["/", "/pricing", "/docs"] {
        let german = service.get(&format!("{path}?hl=de")).await;
        assert!(german.text.contains("<html lang=\"de\">"), "{}", german.text);
        assert!(service.get(path).await.text.contains("<html lang=\"en\">"));
    }
}

#[tokio::test]
async fn page_errors_are_in_words_of_the_pages() {
    let service = ServiceFixture::start().await;
    let long = format!("/?url={}", "x".repeat(5_000));
    for (method, target, status, words) in [
        ("GET", "/nothing", 404, "Unter dieser Adresse gibt es nichts."),
        ("GET", "/docs/nothing", 404, "Unter dieser Adresse gibt es nichts."),
        ("GET", "/search", 404, "Unter dieser Adresse gibt es nichts."),
        ("POST", "/pricing", 405, "Diese Adresse lässt sich so nicht verwenden."),
        ("GET", "/checkout/none", 404, "Unter dieser Adresse gibt es keine Bestellung"),
        ("GET", "/?url=a&url=b", 400, "Das ist kein Link zu einem Video."),
        ("GET", "/?url=%ff", 400, "Das ist kein Link zu einem Video."),
        ("GET", &long, 400, "Dieser Text ist für einen Link zu lang."),
        ("GET", "/?url=https://example.org/x", 400, "Dieser Link ist nicht von YouTube"),
        ("GET", "/?url=https://www.youtube.com/@a", 400, "Dieser Link führt zu einem Kanal"),
        ("GET", "/?url=https://a@youtu.be/x", 400, "Teile dieses Links verbergen"),
        ("GET", "/?url=https://youtu.be/abc", 400, "Der Link ist nicht vollständig."),
    ] {
        let headers = [BROWSER, ("accept-language", "de")];
        let page = service.send(request(method, target, &headers, "")).await;
        assert_eq!(page.status, status, "{target}");
        assert!(page.text.contains(words), "{target}: {}", page.text);
    }
}
