//! The stream of a list's videos, through the facade.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use transcript_core::supplier::{ListAbsenceReason, SupplyError, SupplyReason};
use verbatim::{ErrorKind, Options, UnavailableList, Verbatim};
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::social::supplier_calls::options;

const PLAYLIST: &str = "PL0123456789abcdef";

fn browse() -> Rule {
    Rule::post("www.youtube.com", "/youtubei/v1/browse")
}

fn entry(number: usize) -> Value {
    json!({ "playlistVideoRenderer": { "videoId": format!("vb-stream-{number}"), "lengthSeconds": "60" } })
}

fn page(items: &[Value]) -> ReplayResponse {
    ReplayResponse::json(&json!({ "onResponseReceivedActions": [
        { "appendContinuationItemsAction": { "continuationItems": items } }] }))
}

fn token(token: &str) -> Value {
    json!({ "continuationItemRenderer": { "continuationEndpoint": { "continuationCommand": { "token": token } } } })
}

async fn open(script: Script) -> Result<(Verbatim, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let options = Options { upstream: options(&[&proxy], proxy.ca_file()), ..Options::default() };
    Ok((Verbatim::open(options).await?, proxy))
}

#[tokio::test]
async fn video_stream_reads_pages_as_they_are_needed() -> Result<()> {
    let first = browse().json("/browseId", format!("VL{PLAYLIST}"));
    let second = browse().json("/continuation", "T2");
    let third = browse().json("/continuation", "T3");
    let script = Script::new()
        .rule(first.respond(page(&[entry(0), entry(1), token("T2")])))
        .rule(second.respond(page(&[entry(2), token("T3")])))
        .rule(third.respond(ReplayResponse::json(&json!({ "newLayout": {} }))));
    let (verbatim, proxy) = open(script).await?;
    ensure!(
        verbatim
            .videos("https://youtu.be/dQw4w9WgXcQ")
            .is_err_and(|error| error.kind() == ErrorKind::Invalid)
    );

    let mut videos = verbatim.videos(PLAYLIST)?.with_limit(3);
    let mut found = Vec::new();
    for requests in [1, 1, 2] {
        let listed = videos.next().await.context("a video")??;
        ensure!(proxy.requests().len() == requests, "{:?}", proxy.requests());
        found.push(listed.video.id().to_owned());
    }
    ensure!(found == ["vb-stream-0", "vb-stream-1", "vb-stream-2"], "{found:?}");
    ensure!(videos.next().await.is_none() && proxy.requests().len() == 2, "the limit ends the stream");

    let mut videos = verbatim.videos(PLAYLIST)?;
    let mut count = 0;
    let error = loop {
        match videos.next().await.context("the third page has an unknown format")? {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    ensure!(count == 3 && error.kind() == ErrorKind::Unavailable, "{count} videos: {error}");
    let cause = error.cause().and_then(|cause| cause.error().downcast_ref::<SupplyError>());
    ensure!(cause.is_some_and(|cause| *cause.reason() == SupplyReason::Unreadable), "{cause:?}");
    ensure!(videos.next().await.is_none(), "the stream has ended");
    Ok(())
}

#[tokio::test]
async fn video_stream_of_missing_list_is_not_found() -> Result<()> {
    let alert = json!({ "alerts": [{ "alertRenderer": { "type": "ERROR",
        "text": { "simpleText": "This playlist is private." } } }] });
    let (verbatim, proxy) = open(Script::new().rule(browse().respond(ReplayResponse::json(&alert)))).await?;
    let error = verbatim.videos(PLAYLIST)?.next().await.context("an error")?;
    let error = error.err().context("an error")?;
    ensure!(error.kind() == ErrorKind::NotFound, "{error}");
    let cause = error.cause().and_then(|cause| cause.error().downcast_ref::<UnavailableList>());
    ensure!(cause.is_some_and(|list| list.reason() == ListAbsenceReason::Private), "{cause:?}");

    let none = Verbatim::open(Options::default().without_suppliers()).await?;
    let error = none.videos(PLAYLIST)?.next().await.context("an error")?;
    ensure!(error.is_err_and(|error| error.kind() == ErrorKind::Unsupported));
    ensure!(proxy.requests().len() == 1);
    Ok(())
}
