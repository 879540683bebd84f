//! No response of the platform causes a request to a foreign host.

use anyhow::Result;
use serde_json::{Value, json};
use verbatim_tests::{
    ConnectionTrap, foreign_urls,
    replay::{ReplayProxy, ReplayResponse, Rule, Script},
};

use super::{CAPTIONS, HOST, PLAYER, behind};
use crate::social::supplier_calls::{check_failure, fetch};

const VIDEO: &str = "vb-hosts-00";

/// A player response with one English track at this address.
fn player(address: &str) -> Value {
    json!({
        "playabilityStatus": { "status": "OK" },
        "captions": { "playerCaptionsTracklistRenderer": { "captionTracks": [
            { "baseUrl": address, "languageCode": "en", "name": { "runs": [{ "text": "English" }] } },
        ] } },
        "videoDetails": { "videoId": VIDEO, "title": "Hosts", "lengthSeconds": "3" },
    })
}

fn script(address: &str) -> Script {
    Script::new().rule(Rule::post(HOST, PLAYER).respond(ReplayResponse::json(&player(address))))
}

#[tokio::test]
async fn youtube_foreign_caption_address_is_not_requested() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    let mut addresses = foreign_urls(HOST, trap.port()?);
    addresses.extend(["data:application/json,{}", "https://["].map(str::to_owned));
    for address in &addresses {
        let proxy = ReplayProxy::start(script(address))?;
        let outcome = fetch(&behind(&proxy)?, VIDEO, None).await?;
        assert!(outcome.is_err(), "{address} gave {outcome:?}");
        let caption_requests = proxy.count(|request| request.path != PLAYER);
        assert_eq!(caption_requests, 0, "{address} was requested: {:?}", proxy.requests());
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.port == 443), "{address}");
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn youtube_redirect_is_not_followed() -> Result<()> {
    let elsewhere = ReplayResponse::status(302).header("location", "https://evil.example/player");
    let here = ReplayResponse::status(307).header("location", "https://www.youtube.com/other");
    let trap = ConnectionTrap::bind()?;
    let foreign = foreign_urls(HOST, trap.port()?);
    let foreign = foreign.iter().map(|url| ReplayResponse::status(302).header("location", url));
    for response in [elsewhere, here].into_iter().chain(foreign) {
        let rule = Rule::post(HOST, PLAYER).respond(response);
        let proxy = ReplayProxy::start(Script::new().rule(rule))?;
        check_failure(&fetch(&behind(&proxy)?, VIDEO, None).await?, "platform_fault")?;
        assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.port == 443));
        assert_eq!(proxy.requests().iter().filter(|request| request.method != "POST").count(), 0);
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn youtube_relative_caption_address_is_resolved() -> Result<()> {
    let captions = Rule::get(HOST, CAPTIONS)
        .respond(ReplayResponse::text("<transcript><text start=\"0\" dur=\"1\">words</text></transcript>"));
    let proxy = ReplayProxy::start(script("/api/timedtext?v=vb-hosts-00&lang=en").rule(captions))?;
    let outcome = fetch(&behind(&proxy)?, VIDEO, None).await?;
    assert!(outcome.is_ok(), "{outcome:?}");
    Ok(())
}
