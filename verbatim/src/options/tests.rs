use super::*;

#[test]
fn configured_sources_follow_platform_suppliers() {
    let before = SupplierOptions::default();
    let mut options = Options::default();
    options.add_named_sources();
    assert_eq!(options.suppliers, before);
    options.service = Some(ServiceOptions::new("https://verbatim.example").with_key("vbk_key"));
    options.ytdlp.program = Some("yt-dlp".into());
    options.add_named_sources();
    assert_eq!(options.suppliers.youtube, [before.youtube, added_suppliers()].concat());
    assert_eq!(options.suppliers.instagram, [before.instagram, added_suppliers()].concat());
}

fn added_suppliers() -> Vec<String> {
    vec!["yt-dlp".to_owned(), "verbatim-service".to_owned()]
}

#[cfg(feature = "accounts")]
#[test]
fn base_url_is_set_for_both_apis() {
    let mut options = Options::default();
    options.set_base_url("https://verbatim.example/words//");
    let addresses = (options.lookup.base_url.as_str(), options.accounts.base_url.as_str());
    assert_eq!(addresses, ("https://verbatim.example/words", "https://verbatim.example/words"));
}
