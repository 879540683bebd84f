//! Tests of the documents of a transcript.

use std::fmt::Write as _;

use http_body_util::BodyExt;
use transcript_core::{
    lookup::LookupOptions,
    transcript::Segment,
    video::{Platform, VideoId},
};

use crate::testing::{ARCHIVED, NEW, ServiceFixture, request, transcript};

#[tokio::test]
async fn documents_are_sent_with_media_type_and_name() {
    let service = ServiceFixture::start().await;
    let pdf = service.get(&format!("/watch/video_site/{ARCHIVED}/pdf")).await;
    assert_eq!((pdf.status.as_u16(), pdf.header("content-type")), (200, Some("application/pdf")));
    assert_eq!(pdf.header("content-disposition"), Some("attachment; filename*=UTF-8''A%2Dtalk.pdf"));
    assert_eq!(pdf.header("cache-control"), Some("no-cache"));
    assert!(pdf.text.starts_with("%PDF-") && pdf.text.trim_end().ends_with("%%EOF"), "{pdf:?}");
    let docx = service.get(&format!("/watch/video_site/{ARCHIVED}/docx")).await;
    assert!(docx.status == 200 && docx.text.starts_with("PK"), "{docx:?}");
    assert_eq!(docx.header("content-disposition"), Some("attachment; filename*=UTF-8''A%2Dtalk.docx"));
    // With the attribute, browsers would not show the page of an error.
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await.text;
    assert!(page.contains(&format!("href=\"./{ARCHIVED}/docx\">")), "{page}");
    for format in ["pdf", "docx"] {
        let none = service.get(&format!("/watch/video_site/{NEW}/{format}")).await;
        assert_eq!(none.status, 404, "{none:?}");
    }
}

#[tokio::test]
async fn pdf_without_font_is_page_with_letters() {
    let service = ServiceFixture::start().await;
    let mut unwritten = transcript(&VideoId::new(Platform::YouTube, NEW).unwrap());
    unwritten.title = Some("Garay \u{10d50}".to_owned());
    service.keep(unwritten).await;
    let target = format!("/watch/video_site/{NEW}/pdf?hl=de");
    let page = service.send(request("GET", &target, &[("accept", "text/html")], "")).await;
    assert_eq!((page.status.as_u16(), page.header("content-disposition")), (422, None));
    assert!(page.text.contains("keine Schrift: \u{10d50}. Laden Sie das Word-Dokument"), "{}", page.text);
    for link in [
        format!("<a href=\"../{NEW}?hl=de\">Das Transkript lesen</a>"),
        "<a href=\"docx?hl=de\">Das Word-Dokument herunterladen</a>".to_owned(),
    ] {
        assert!(page.text.contains(&link), "{link}: {}", page.text);
    }
    let docx = service.get(&format!("/watch/video_site/{NEW}/docx")).await;
    assert_eq!(docx.status, 200);
}

#[tokio::test]
async fn documents_are_limited_per_network_by_their_length() {
    let options = LookupOptions { tool_calls_per_network_per_minute: 4, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let mut long = transcript(&VideoId::new(Platform::YouTube, NEW).unwrap());
    long.segments = (0..64).map(|at| Segment::new("so ".repeat(1_024), at * 1_000, 1_000)).collect();
    service.keep(long).await;
    let short = format!("/watch/video_site/{ARCHIVED}/pdf");
    let long = format!("/watch/video_site/{NEW}/docx");
    assert_eq!(service.get(&short).await.status, 200);
    // Three times 64 KiB count as three.
    assert_eq!(service.get(&long).await.status, 200);
    for target in [&short, &long] {
        let refused = service.get(&format!("{target}?hl=de")).await;
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("60")));
        assert!(refused.text.contains("Zu viele Downloads in kurzer Zeit."), "{}", refused.text);
    }
    let page = service.send(request("GET", &short, &[("accept", "text/html")], "")).await;
    let link = format!("<a href=\"../{ARCHIVED}\">Read the transcript</a>");
    assert!(page.status == 429 && page.text.contains(&link), "{page:?}");
    let other = service.send_from("198.51.100.7", request("GET", &short, &[], "")).await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn document_reserves_length_of_its_file_once() {
    let service = ServiceFixture::start().await;
    let mut long = transcript(&VideoId::new(Platform::YouTube, NEW).unwrap());
    let mut word = 1_u32;
    let mut words = || {
        (0..12).fold(String::new(), |mut text, _| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            write!(text, "{word:08x} ").unwrap();
            text
        })
    };
    // Writing it takes more than the whole budget.
    long.segments = (0..3_000).map(|at| Segment::new(words(), at * 1_000, 1_000)).collect();
    service.keep(long).await;
    let target = format!("/watch/video_site/{NEW}/docx");
    let answer = service.http.answer(request("GET", &target, &[], ""), "192.0.2.1".parse().unwrap()).await;
    assert_eq!(answer.status(), 200);
    let (used, _) = service.app.account_budget.usage();
    let file = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(file.starts_with(b"PK") && file.len() > 64 * 1024, "{} bytes", file.len());
    assert_eq!(used, (file.len() as u64).next_multiple_of(1024));
    drop(file);
    assert_eq!(service.app.account_budget.usage().0, 0);
}
