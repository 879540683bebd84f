//! No answer of TikTok leads to a request elsewhere.

use anyhow::Result;
use serde_json::json;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{CAPTIONS, FILES, HOST, PAGE, VIDEO, good_captions, good_page, make, played, script};
use crate::social::asking::{ask, behind, check_failure, reason};

/// Addresses of nobody's captions.
const ELSEWHERE: [&str; 16] = [
    "https://captions.example/a.vtt",
    "http://v16-webapp.tiktok.com/a.vtt",
    "https://v16-webapp.tiktok.com:8443/a.vtt",
    "https://v16-webapp.tiktok.com.example/a.vtt",
    "https://eviltiktok.com/a.vtt",
    "https://someone@v16-webapp.tiktok.com/a.vtt",
    "https://v16-webapp.tiktok.com@captions.example/a.vtt",
    "https://127.0.0.1/a.vtt",
    "http://127.0.0.1:9/a.vtt",
    "https://[::1]/a.vtt",
    "https://169.254.169.254/latest/meta-data",
    "https://2130706433/",
    "//captions.example/a.vtt",
    "file:///etc/hostname",
    "data:text/vtt,WEBVTT",
    "https://[",
];

/// A page whose only track is at these addresses.
fn page(addresses: &[&str]) -> Answer {
    let state = json!({"__DEFAULT_SCOPE__": {"webapp.video-detail": {"statusCode": 0, "itemInfo": {"itemStruct": {
        "id": VIDEO, "desc": "Hosts", "video": {"duration": 3, "claInfo": {"captionInfos": [{
            "language": "eng-US", "urlList": addresses, "isAutoGen": true, "isOriginalCaption": true,
        }]}},
    }}}}});
    let script = format!("<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">{state}</script>");
    Answer::bytes("text/html", script)
}

#[tokio::test]
async fn an_address_that_is_not_tiktoks_is_never_asked() -> Result<()> {
    for address in ELSEWHERE {
        let (outcome, proxy) = played(script(vec![page(&[address])], vec![])).await?;
        assert!(outcome.is_err(), "{address} gave {outcome:?}");
        assert_eq!(proxy.requests().len(), 1, "{address} was asked: {:?}", proxy.requests());
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.port == 443), "{address}");
    }
    // The next address of the list is TikTok's own.
    let good = format!("//{FILES}{CAPTIONS}");
    let (outcome, _) =
        played(script(vec![page(&["https://captions.example/", &good])], vec![good_captions()?])).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn no_redirect_leads_elsewhere() -> Result<()> {
    for address in ELSEWHERE.into_iter().filter(|address| !address.ends_with('[')) {
        let redirect = Answer::status(302).header("location", address);
        for script in [script(vec![redirect.clone()], vec![]), script(vec![good_page()?], vec![redirect])] {
            let (outcome, proxy) = played(script).await?;
            assert!(outcome.is_err(), "{address} gave {outcome:?}");
            let own = |host: &str| [HOST, FILES].contains(&host);
            assert!(proxy.tunnels().iter().all(|tunnel| own(&tunnel.host) && tunnel.granted), "{address}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn redirects_in_a_circle_end() -> Result<()> {
    let circle = |to: &str| Answer::status(302).header("location", to);
    let (outcome, proxy) = played(script(vec![circle(PAGE)], vec![])).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 6);
    let (outcome, proxy) = played(script(vec![good_page()?], vec![circle(CAPTIONS)])).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 7);
    Ok(())
}

#[tokio::test]
async fn a_page_may_not_lead_to_a_delivery_network() -> Result<()> {
    let away = Answer::status(302).header("location", "https://v16-webapp.tiktok.com/page");
    let script = Script::new()
        .rule(Rule::get(HOST, PAGE).answer(away))
        .rule(Rule::get(FILES, "/page").answer(good_page()?));
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&behind(make, &proxy)?, VIDEO, None).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 1);
    Ok(())
}
