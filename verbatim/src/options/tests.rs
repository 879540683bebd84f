use super::*;

#[test]
fn a_source_that_is_named_is_asked_after_the_platforms() {
    let before = SupplierOptions::default();
    let mut options = Options::default();
    options.add_named_sources();
    assert_eq!(options.suppliers, before);
    options.service = Some(ServiceOptions::new("https://verbatim.example", "vbk_key"));
    options.ytdlp.program = Some("yt-dlp".into());
    options.add_named_sources();
    assert_eq!(options.suppliers.video_site, [before.video_site, more()].concat());
    assert_eq!(options.suppliers.reels, [before.reels, more()].concat());
}

fn more() -> Vec<String> {
    vec!["yt-dlp".to_owned(), "verbatim-service".to_owned()]
}

#[test]
fn both_surfaces_have_links_of_one_address() {
    let mut options = Options::default();
    options.set_base_url("https://verbatim.example/words//");
    let told = (options.lookup.base_url.as_str(), options.accounts.base_url.as_str());
    assert_eq!(told, ("https://verbatim.example/words", "https://verbatim.example/words"));
}
