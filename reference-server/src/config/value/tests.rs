use ipnet::IpNet;

use super::*;
use crate::config::{FileMode, server::AdminAddress};

fn read<T: ParseSetting>(value: &str) -> Option<String> {
    T::read(&RawSettings::Text(value.to_owned())).ok().map(|value| value.show())
}

#[test]
fn duration_text_round_trips() {
    for (text, expect) in [
        ("20s", Some("\"20s\"")),
        ("500ms", Some("\"500ms\"")),
        ("15m", Some("\"15m\"")),
        ("6h", Some("\"6h\"")),
        ("7d", Some("\"7d\"")),
        ("1d", Some("\"1d\"")),
        ("90s", Some("\"90s\"")),
        ("20", None),
        ("", None),
        ("-5s", None),
        ("20 parsecs", None),
        ("99999999999999999999s", None),
    ] {
        assert_eq!(read::<DurationValue>(text).as_deref(), expect, "{text}");
        if let Some(shown) = expect {
            assert_eq!(read::<DurationValue>(shown.trim_matches('"')).as_deref(), expect, "{text}");
        }
    }
}

#[test]
fn size_text_is_parsed() {
    for (text, expect) in [
        ("25MB", Some("\"25MB\"")),
        ("25 MB", Some("\"25MB\"")),
        ("1GiB", Some("\"1GiB\"")),
        ("1024B", Some("\"1KiB\"")),
        ("7B", Some("\"7B\"")),
        ("0B", Some("\"0B\"")),
        ("25", None),
        ("MB", None),
        ("-1MB", None),
        ("99999999999999GB", None),
    ] {
        assert_eq!(read::<ByteSize>(text).as_deref(), expect, "{text}");
    }
}

#[test]
fn address_text_is_parsed() {
    assert_eq!(read::<SocketAddr>("[::1]:0").as_deref(), Some("\"[::1]:0\""));
    assert_eq!(read::<SocketAddr>("localhost:80"), None);
    assert_eq!(read::<IpNet>("10.0.0.0/8").as_deref(), Some("\"10.0.0.0/8\""));
    assert_eq!(read::<IpNet>("::1").as_deref(), Some("\"::1/128\""));
    assert_eq!(read::<IpNet>("10.0.0.0/33"), None);
    // The peers of a socket for both families are compared as IPv4 addresses.
    assert_eq!(read::<IpNet>("::ffff:10.0.0.0/104").as_deref(), Some("\"10.0.0.0/8\""));
    assert_eq!(read::<IpNet>("::ffff:10.0.0.1").as_deref(), Some("\"10.0.0.1/32\""));
    assert_eq!(read::<IpNet>("::/0").as_deref(), Some("\"::/0\""));
    for (text, expect) in [
        ("https://a.example/", Some("\"https://a.example\"")),
        ("http://a.example:81/x/", Some("\"http://a.example:81/x\"")),
        ("ftp://a.example", None),
        ("https://user@a.example", None),
        ("https://a.example/?q", None),
        ("a.example", None),
    ] {
        assert_eq!(read::<BaseUrl>(text).as_deref(), expect, "{text}");
    }
}

#[test]
fn port_and_mode_need_no_quotes() {
    let admin = |raw| AdminAddress::read(&raw).map(|address| address.show());
    let mode = |raw| FileMode::read(&raw).map(|mode| mode.show());
    for raw in [RawSettings::Bare, RawSettings::Text] {
        assert_eq!(admin(raw("9465".to_owned())), Ok("\"127.0.0.1:9465\"".to_owned()));
        assert_eq!(admin(raw("94650".to_owned())), Err(None));
        for text in ["660", "0o660"] {
            assert_eq!(mode(raw(text.to_owned())), Ok("\"660\"".to_owned()));
        }
        for text in ["999", "7777", "true", "-1"] {
            assert_eq!(mode(raw(text.to_owned())), Err(None), "{text}");
        }
    }
}

#[test]
fn base_url_remote_http_is_exposed() {
    for (text, expect) in [
        ("https://a.example", false),
        ("http://a.example", true),
        ("http://localhost:8080", false),
        ("http://127.0.0.1", false),
        ("http://[::1]:1", false),
        ("http://0.0.0.0:8080", true),
    ] {
        let url = BaseUrl::read(&RawSettings::Text(text.to_owned())).unwrap();
        assert_eq!(url.is_exposed(), expect, "{text}");
    }
}

#[test]
fn list_text_is_split_at_commas() {
    assert_eq!(read::<Vec<String>>("a, b,c").as_deref(), Some("[\"a\", \"b\", \"c\"]"));
    assert_eq!(read::<Vec<String>>("").as_deref(), Some("[]"));
    assert_eq!(read::<Vec<String>>("a,,b"), None);
    let detail = Vec::<IpNet>::read(&RawSettings::Text("::1, x".to_owned())).unwrap_err();
    assert_eq!(detail.as_deref(), Some("\"x\" is invalid"));
    assert!(Vec::<String>::read(&RawSettings::List(vec![RawSettings::List(Vec::new())])).is_err());
}

#[test]
fn secret_debug_and_display_are_redacted() {
    let secret = Secret::read(&RawSettings::Text("hush".to_owned())).unwrap();
    assert_eq!(secret.reveal(), "hush");
    assert!(!format!("{secret:?} {}", secret.show()).contains("hush"));
    let url =
        SecretUrl::read(&RawSettings::Text("http://me:hush@proxy:1/?k=hush".to_owned()), &["http"]).unwrap();
    assert_eq!(url.redacted(), "http://me:…@proxy:1/");
    assert!(!format!("{url:?}").contains("hush"));
    let url = SecretUrl::read(&RawSettings::Text("http://hush@proxy:1/#hush".to_owned()), &["http"]).unwrap();
    assert_eq!(url.redacted(), "http://…@proxy:1/");
    let slash = RawSettings::Text("postgres://me:1/hush@database/verbatim".to_owned());
    assert_eq!(SecretUrl::read(&slash, &["postgres"]).unwrap().redacted(), "postgres://(not shown)");
}

#[test]
fn quoted_text_is_truncated_and_escaped() {
    assert_eq!(quoted("a\u{1b}[31m\n"), "\"a\\u{1b}[31m\\n\"");
    assert_eq!(quoted(&"x".repeat(500)).chars().count(), SHOWN_MAX + 3);
}
