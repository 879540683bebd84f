//! No answer of X leads to a request elsewhere.

use anyhow::Result;
use verbatim_tests::replay::Answer;

use super::{API, FILES, MASTER, SITE, SYNDICATION, Stage, played};
use crate::social::asking::check_failure;

/// Addresses of nobody's captions.
const ELSEWHERE: [&str; 14] = [
    "https://captions.example/a",
    "http://video.twimg.com/a",
    "https://video.twimg.com:8443/a",
    "https://video.twimg.com.example/a",
    "https://abs.twimg.com/a",
    "https://x.com/a",
    "https://someone@video.twimg.com/a",
    "https://127.0.0.1/a",
    "http://127.0.0.1:9/a",
    "https://[::1]/a",
    "https://169.254.169.254/latest/meta-data",
    "//captions.example/a",
    "file:///etc/hostname",
    "data:text/vtt,WEBVTT",
];

/// Fails unless a look-up ends without words, and without a request to any but X's hosts.
async fn check(stage: Stage, address: &str) -> Result<()> {
    let (outcome, proxy) = played(stage).await?;
    assert!(outcome.is_err(), "{address} gave {outcome:?}");
    let own = [SITE, API, SYNDICATION, FILES];
    assert!(
        proxy.tunnels().iter().all(|tunnel| own.contains(&tunnel.host.as_str()) && tunnel.granted),
        "{address}"
    );
    Ok(())
}

#[tokio::test]
async fn no_playlist_leads_elsewhere() -> Result<()> {
    for address in ELSEWHERE {
        let master = format!("#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,LANGUAGE=\"en\",URI=\"{address}\"\n");
        check(Stage { master: vec![Answer::text(master)], ..Stage::good()? }, address).await?;
        let subs = format!("#EXTM3U\n#EXTINF:9,\n{address}\n");
        check(Stage { subs: vec![Answer::text(subs)], ..Stage::good()? }, address).await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_post_leads_elsewhere() -> Result<()> {
    let post = String::from_utf8(std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/recordings/x/posts/video.json"
    ))?)?;
    let own = format!("https://{FILES}{MASTER}?tag=21&v=cfc");
    assert!(post.contains(&own));
    for address in ELSEWHERE {
        let post = Answer::text(post.replace(&own, address));
        check(Stage { post: vec![post], ..Stage::good()? }, address).await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_redirect_leads_elsewhere() -> Result<()> {
    for address in ELSEWHERE {
        let away = || vec![Answer::status(302).header("location", address)];
        check(Stage { pass: away(), syndication: away(), ..Stage::good()? }, address).await?;
        check(Stage { post: away(), syndication: away(), ..Stage::good()? }, address).await?;
        check(Stage { master: away(), ..Stage::good()? }, address).await?;
        check(Stage { words: away(), ..Stage::good()? }, address).await?;
    }
    Ok(())
}

#[tokio::test]
async fn redirects_in_a_circle_end() -> Result<()> {
    let circle = Answer::status(302).header("location", MASTER);
    let (outcome, proxy) = played(Stage { master: vec![circle], ..Stage::good()? }).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.count(|request| request.path == MASTER), 6);
    Ok(())
}
