//! No response of TikTok causes a request to a foreign host.

use anyhow::Result;
use serde_json::json;
use verbatim_tests::{
    ConnectionTrap, foreign_urls,
    replay::{ReplayProxy, ReplayResponse, Rule, Script},
};

use super::{CAPTIONS, FILES, HOST, PAGE, VIDEO, good_captions, good_page, make, replay_script, script};
use crate::social::supplier_calls::{behind, check_failure, fetch, reason};

/// All addresses that must not be requested; those with `port` lead to a listener.
fn elsewhere(port: u16) -> Vec<String> {
    let own = [HOST, FILES].into_iter().flat_map(|host| foreign_urls(host, port));
    own.chain(["https://[".to_owned()]).collect()
}

/// A page whose only track has these addresses.
fn page(addresses: &[&str]) -> ReplayResponse {
    let state = json!({"__DEFAULT_SCOPE__": {"webapp.video-detail": {"statusCode": 0, "itemInfo": {"itemStruct": {
        "id": VIDEO, "desc": "Hosts", "video": {"duration": 3, "claInfo": {"captionInfos": [{
            "language": "eng-US", "urlList": addresses, "isAutoGen": true, "isOriginalCaption": true,
        }]}},
    }}}}});
    let script = format!("<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">{state}</script>");
    ReplayResponse::bytes("text/html", script)
}

#[tokio::test]
async fn tiktok_foreign_caption_address_is_not_requested() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    for address in &elsewhere(trap.port()?) {
        let (outcome, proxy) = replay_script(script(vec![page(&[address])], vec![])).await?;
        assert!(outcome.is_err(), "{address} gave {outcome:?}");
        assert_eq!(proxy.requests().len(), 1, "{address} was requested: {:?}", proxy.requests());
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.port == 443), "{address}");
    }
    assert_eq!(trap.connections(), 0);
    // The second address of the list belongs to TikTok.
    let good = format!("//{FILES}{CAPTIONS}");
    let (outcome, _) =
        replay_script(script(vec![page(&["https://captions.example/", &good])], vec![good_captions()?]))
            .await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn tiktok_foreign_redirect_is_not_followed() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    let addresses = elsewhere(trap.port()?);
    for address in addresses.iter().filter(|address| !address.ends_with('[')) {
        let redirect = ReplayResponse::status(302).header("location", address);
        for script in [script(vec![redirect.clone()], vec![]), script(vec![good_page()?], vec![redirect])] {
            let (outcome, proxy) = replay_script(script).await?;
            assert!(outcome.is_err(), "{address} gave {outcome:?}");
            let own = |host: &str| [HOST, FILES].contains(&host);
            assert!(proxy.tunnels().iter().all(|tunnel| own(&tunnel.host) && tunnel.granted), "{address}");
        }
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn tiktok_redirect_loop_ends() -> Result<()> {
    let redirect_to = |to: &str| ReplayResponse::status(302).header("location", to);
    let (outcome, proxy) = replay_script(script(vec![redirect_to(PAGE)], vec![])).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 6);
    let (outcome, proxy) = replay_script(script(vec![good_page()?], vec![redirect_to(CAPTIONS)])).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 7);
    Ok(())
}

#[tokio::test]
async fn tiktok_page_redirect_to_cdn_is_rejected() -> Result<()> {
    let redirect = ReplayResponse::status(302).header("location", "https://v16-webapp.tiktok.com/page");
    let script = Script::new()
        .rule(Rule::get(HOST, PAGE).respond(redirect))
        .rule(Rule::get(FILES, "/page").respond(good_page()?));
    let proxy = ReplayProxy::start(script)?;
    let outcome = fetch(&behind(make, &proxy)?, VIDEO, None).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 1);
    Ok(())
}
