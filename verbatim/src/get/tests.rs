use super::*;
use crate::{Options, SupplierOptions};

async fn get(link: &str, language: Option<&str>) -> Result<GetOutcome> {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    let verbatim = Verbatim::open(options).await.unwrap();
    verbatim.get(Get { link: link.to_owned(), language: language.map(str::to_owned) }).await
}

#[tokio::test]
async fn a_wrong_link_or_language_is_invalid() {
    for (link, language) in [
        ("", None),
        ("https://example.org/", None),
        ("https://www.youtube.com/@someone", None),
        ("dQw4w9WgXcQ", Some("no language")),
    ] {
        let error = get(link, language).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{link} {language:?}");
    }
}

#[tokio::test]
async fn without_a_supplier_the_reason_and_the_watch_address_are_told() {
    for (link, watch_url) in [
        ("https://youtu.be/dQw4w9WgXcQ", "http://127.0.0.1:8080/watch/video_site/dQw4w9WgXcQ"),
        ("https://www.instagram.com/reel/Cabc123/", "http://127.0.0.1:8080/watch/reels/Cabc123"),
        ("https://vm.tiktok.com/ZMabcdef/", "http://127.0.0.1:8080/watch/short_video/vm:ZMabcdef"),
        (
            "https://www.instagram.com/share/reel/BAabc123/",
            "http://127.0.0.1:8080/watch/reels/share-reel:BAabc123",
        ),
    ] {
        let GetOutcome::Missing(missing) = get(link, None).await.unwrap() else { panic!("{link}") };
        assert_eq!((missing.reason, missing.watch_url.as_str()), (FailureReason::ConfigError, watch_url));
        assert!(missing.message.ends_with('.'), "{missing:?}");
    }
}

#[test]
fn a_store_is_never_the_fault_of_the_link() {
    assert_eq!(fault(Error::invalid("x")).kind(), ErrorKind::Unexpected);
    assert_eq!(fault(Error::unavailable("x")).kind(), ErrorKind::Unavailable);
}
