//! No response of X causes a request to a foreign host.

use anyhow::Result;
use verbatim_tests::{ConnectionTrap, foreign_urls, replay::ReplayResponse};

use super::{API, FILES, MASTER, SITE, SYNDICATION, XFixture, replay_script};
use crate::social::supplier_calls::check_failure;

/// Other hosts of X, without captions.
const OTHER_HOSTS: [&str; 2] = ["https://abs.twimg.com/a", "https://x.com/a"];

/// All addresses that must not be requested; those with the trap's port lead to it.
fn elsewhere(trap: &ConnectionTrap) -> Result<Vec<String>> {
    let foreign = foreign_urls(FILES, trap.port()?);
    Ok(foreign.into_iter().chain(OTHER_HOSTS.map(str::to_owned)).collect())
}

/// Fails unless the call fails and all its requests go to hosts of X.
async fn check(fixture: XFixture, address: &str) -> Result<()> {
    let (outcome, proxy) = replay_script(fixture).await?;
    assert!(outcome.is_err(), "{address} gave {outcome:?}");
    let own = [SITE, API, SYNDICATION, FILES];
    assert!(
        proxy.tunnels().iter().all(|tunnel| own.contains(&tunnel.host.as_str()) && tunnel.granted),
        "{address}"
    );
    Ok(())
}

#[tokio::test]
async fn x_foreign_playlist_address_is_not_requested() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    for address in &elsewhere(&trap)? {
        let master = format!("#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,LANGUAGE=\"en\",URI=\"{address}\"\n");
        check(XFixture { master: vec![ReplayResponse::text(master)], ..XFixture::good()? }, address).await?;
        let subtitle_list = format!("#EXTM3U\n#EXTINF:9,\n{address}\n#EXT-X-ENDLIST\n");
        check(
            XFixture { subtitle_list: vec![ReplayResponse::text(subtitle_list)], ..XFixture::good()? },
            address,
        )
        .await?;
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn x_foreign_post_address_is_not_requested() -> Result<()> {
    let post = String::from_utf8(std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/recordings/x/posts/video.json"
    ))?)?;
    let own = format!("https://{FILES}{MASTER}?tag=21&v=cfc");
    assert!(post.contains(&own));
    let trap = ConnectionTrap::bind()?;
    for address in &elsewhere(&trap)? {
        let post = ReplayResponse::text(post.replace(&own, &address.replace('\\', "\\\\")));
        check(XFixture { post: vec![post], ..XFixture::good()? }, address).await?;
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn x_foreign_redirect_is_not_followed() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    for address in &elsewhere(&trap)? {
        let redirect = || vec![ReplayResponse::status(302).header("location", address)];
        check(XFixture { guest_token: redirect(), syndication: redirect(), ..XFixture::good()? }, address)
            .await?;
        check(XFixture { post: redirect(), syndication: redirect(), ..XFixture::good()? }, address).await?;
        check(XFixture { master: redirect(), ..XFixture::good()? }, address).await?;
        check(XFixture { captions: redirect(), ..XFixture::good()? }, address).await?;
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn x_redirect_loop_ends() -> Result<()> {
    let loop_redirect = ReplayResponse::status(302).header("location", MASTER);
    let (outcome, proxy) =
        replay_script(XFixture { master: vec![loop_redirect], ..XFixture::good()? }).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.count(|request| request.path == MASTER), 6);
    Ok(())
}
