//! The example of the facade crate, against the built server.

use anyhow::{Result, anyhow};

use super::fixture::{NONE, ServiceFixture, VIDEO, link};

#[path = "../../../verbatim/examples/ask_a_server.rs"]
#[expect(dead_code, reason = "the test does not call its main function")]
mod ask_a_server;

#[tokio::test(flavor = "multi_thread")]
async fn service_example_returns_lines_or_watch_page() -> Result<()> {
    let fixture = ServiceFixture::start(&[])?;
    let (url, key) = (fixture.url(), fixture.key()?);
    let fetch_lines = async |key: Option<&str>, video: &str| {
        ask_a_server::fetch_lines(&url, key, &link(video)).await.map_err(|error| anyhow!("{error}"))
    };
    let page = fetch_lines(None, VIDEO).await?.unwrap_err();
    assert_eq!(page.lines().last(), Some(format!("{url}/watch/video_site/{VIDEO}").as_str()));
    let lines = fetch_lines(Some(&key), VIDEO).await?.map_err(|reason| anyhow!(reason))?;
    assert_eq!(lines.first().map(String::as_str), Some("0.5 This is dyke-walk-0."));
    // The transcript is archived now, so it needs no key.
    assert_eq!(fetch_lines(None, VIDEO).await?, Ok(lines));
    assert!(fetch_lines(Some("not a key"), NONE).await.is_err());
    Ok(())
}
