//! The example in the facade's folder does what it says.

use anyhow::{Result, anyhow};

use super::stage::{NONE, Stage, VIDEO, link};

#[path = "../../../verbatim/examples/ask_a_server.rs"]
#[expect(dead_code, reason = "its way from the command line is not ours")]
mod ask_a_server;

#[tokio::test(flavor = "multi_thread")]
async fn the_example_gives_the_words_or_the_page() -> Result<()> {
    let stage = Stage::with(&[])?;
    let (url, key) = (stage.url(), stage.key()?);
    let ask = async |key: Option<&str>, video: &str| {
        ask_a_server::ask(&url, key, &link(video)).await.map_err(|error| anyhow!("{error}"))
    };
    let page = ask(None, VIDEO).await?.unwrap_err();
    assert_eq!(page.lines().last(), Some(format!("{url}/watch/video_site/{VIDEO}").as_str()));
    let words = ask(Some(&key), VIDEO).await?.map_err(|why| anyhow!(why))?;
    assert_eq!(words.first().map(String::as_str), Some("0.5 This is dyke-walk-0."));
    // By now it is archived, for everybody.
    assert_eq!(ask(None, VIDEO).await?, Ok(words));
    assert!(ask(Some("not a key"), NONE).await.is_err());
    Ok(())
}
