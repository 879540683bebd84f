//! The figures are what happened.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use http::Method;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::{Figures, Watched};
use crate::server::{
    harness::{borrowed, keys, until},
    platform::{held_platform, platform, settings},
    v1::post::{Outbox, account},
};

const VIDEO: &str = "dyke-walk-0";
const OTHER: &str = "dyke-walk-1";

const RULES: &str = include_str!("../../../../deploy/prometheus-rules.yml");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana-dashboard.json");

/// The figures that a text names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("verbatim_") || word.starts_with("process_"))
}

/// A figure is this, for all that have these labels together.
fn is(figures: &Figures, name: &str, labels: &[(&str, &str)], expect: f64) {
    let found = figures.sum(name, labels);
    assert!((found - expect).abs() < 1e-9, "{name} {labels:?} is {found}, not {expect}");
}

/// Every answer, by route and status.
fn requests_are_counted(figures: &Figures) {
    let is = |name: &str, labels: &[(&str, &str)], expect| is(figures, name, labels, expect);
    let requests = "verbatim_http_requests_total";
    is(requests, &[("route", "/api/transcript"), ("status", "200")], 6.0);
    is(requests, &[("route", "/api/transcript"), ("status", "400")], 1.0);
    is(requests, &[("route", "/api/v1/transcript"), ("status", "200")], 3.0);
    is(requests, &[("route", "/api/v1/transcript"), ("status", "500")], 1.0);
    is(requests, &[("route", "/api/v1/me"), ("status", "401")], 1.0);
    is(requests, &[("route", "none"), ("status", "404")], 200.0);
    is(requests, &[("route", "/health"), ("status", "405")], 1.0);
    is("verbatim_http_request_duration_seconds_count", &[("route", "none")], 200.0);
    let whole = [("route", "/api/transcript"), ("le", "+Inf")];
    is("verbatim_http_request_duration_seconds_bucket", &whole, 7.0);
    assert!(figures.sum("verbatim_http_connections", &[]) >= 1.0);
}

/// Where transcripts came from, and who was asked for them.
fn look_ups_are_counted(figures: &Figures) {
    let is = |name: &str, labels: &[(&str, &str)], expect| is(figures, name, labels, expect);
    let answers = "verbatim_transcript_answers_total";
    is(answers, &[("surface", "lookup")], 6.0);
    is(answers, &[("surface", "lookup"), ("from", "nothing")], 1.0);
    is(answers, &[("surface", "lookup"), ("from", "fetched")], 1.0);
    assert!(figures.sum(answers, &[("surface", "lookup"), ("from", "ready")]) >= 1.0);
    is(answers, &[("surface", "v1")], 4.0);
    is(answers, &[("surface", "v1"), ("from", "fetched")], 1.0);
    is(answers, &[("surface", "v1"), ("from", "nothing")], 1.0);

    let captions = ("supplier", "youtube-captions");
    is("verbatim_supplier_fetches_total", &[captions, ("outcome", "transcript")], 2.0);
    is("verbatim_supplier_fetches_total", &[captions, ("platform", "video_site")], 3.0);
    is("verbatim_supplier_fetch_seconds_count", &[captions], 3.0);
    is("verbatim_supplier_at_work", &[], 0.0);
    is("verbatim_fetches", &[], 0.0);
}

/// What it took from whom, and how the server is.
fn steps_are_counted(figures: &Figures) {
    let is = |name: &str, labels: &[(&str, &str)], expect| is(figures, name, labels, expect);
    // One of a key and the service, one of an account that was delivered, and one that was given back.
    let steps = "verbatim_ledger_steps_total";
    is(steps, &[("step", "hold"), ("result", "done")], 3.0);
    is(steps, &[("step", "settle"), ("result", "done")], 2.0);
    is(steps, &[("step", "release"), ("result", "done")], 1.0);
    is(steps, &[("step", "spend"), ("result", "done")], 2.0);
    is("verbatim_ledger_amount_total", &[("step", "settle")], 3.0);
    is("verbatim_ledger_amount_total", &[("step", "spend")], 2.0);

    is("verbatim_ready", &[], 1.0);
    is("verbatim_store_answers", &[], 2.0);
    assert!(figures.sum("verbatim_ready_bodies_size_bytes", &[("surface", "lookup")]) > 0.0);
    is("verbatim_log_lines_dropped_total", &[], 0.0);
    is("verbatim_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    assert!(figures.sum("process_resident_memory_bytes", &[]) > 1e6);
    assert!(figures.samples().count() < 600, "{}", figures.samples().count());
    for name in named(RULES).chain(named(DASHBOARD)) {
        assert!(figures.has(name), "{name} is looked at, but is no figure");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_is_what_happened() -> Result<()> {
    let proxy = platform(&[VIDEO, OTHER], Duration::ZERO)?;
    let data = TempDir::new()?;
    let settings = settings(&proxy);
    let settings = borrowed(&settings);
    let watched = Watched::start(&data, &settings).await?;
    let (server, mut outbox) = (&watched.server, Outbox::of(&data));
    let before = watched.figures().await?;
    assert_eq!(before.sum("verbatim_supplier_resting", &[("supplier", "youtube-captions")]).to_bits(), 0);
    assert!(before.has("verbatim_supplier_resting"), "suppliers are there before anything is asked of them");

    let look_up = format!("/api/transcript?v={VIDEO}");
    let key = keys(&data, 1)?.remove(0);
    // Nothing without a key, fetched with one, then from the archive, in another form, and ready.
    assert_eq!(server.get(&look_up).await?.json()["failureReason"], "needs_verification");
    assert_eq!(server.get_as(&key, &look_up).await?.json()["fromCache"], false);
    for format in ["", "&format=text", "", ""] {
        assert_eq!(server.get(&format!("{look_up}{format}")).await?.status, 200);
    }
    assert_eq!(server.get("/api/transcript").await?.status, 400);
    let account = account(server, &mut outbox, "ann@example.org").await?;
    for video in [OTHER, OTHER, VIDEO, "not-there-0"] {
        server.get_as(&account, &format!("/api/v1/transcript?video_id={video}")).await?;
    }
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    for place in 0..200 {
        let path = format!("/{place}/%0a%22}}{{verbatim_up%201");
        assert_eq!(server.get(&path).await?.status, 404);
    }
    let sent = server.send(Method::POST, "/health", &[], "").await?;
    assert_eq!(sent.status, 405);

    until("mails are sent", async || Ok(watched.figures().await?.sum("verbatim_mail_waiting", &[]) == 0.0))
        .await?;
    let figures = watched.figures().await?;
    requests_are_counted(&figures);
    look_ups_are_counted(&figures);
    steps_are_counted(&figures);
    assert_eq!(watched.ask("/nothing").await?.status, 404);
    assert_eq!(server.get("/metrics").await?.status, 404, "not where everybody may ask");
    let log = watched.log()?;
    assert!(log.contains("GET /api/transcript") && !log.contains("200 GET /metrics"), "{log}");
    Ok(())
}

/// Who waits in line is seen, and who waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_seen() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = held_platform(&[VIDEO, OTHER], &gate)?;
    let data = TempDir::new()?;
    let mut settings = settings(&proxy);
    settings.push(("VERBATIM_YOUTUBE__VIDEOS".to_owned(), "1".to_owned()));
    let settings = borrowed(&settings);
    let watched = Watched::start(&data, &settings).await?;
    let key = keys(&data, 1)?.remove(0);
    let ask = async |video: &str| watched.server.get_as(&key, &format!("/api/transcript?v={video}")).await;
    let seen = async {
        let expect = [
            ("verbatim_supplier_at_work", 1.0),
            ("verbatim_supplier_in_line", 1.0),
            ("verbatim_fetches", 2.0),
            ("verbatim_fetch_callers", 1.0),
        ];
        until("it is seen", async || {
            let figures = watched.figures().await?;
            Ok(expect.iter().all(|(name, value)| (figures.sum(name, &[]) - value).abs() < 1e-9))
        })
        .await?;
        gate.add_permits(1);
        Ok(())
    };
    let (first, second, joined, seen) = tokio::join!(ask(VIDEO), ask(OTHER), ask(VIDEO), seen);
    let seen: Result<()> = seen;
    seen?;
    for reply in [first?, second?, joined?] {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    until("nothing waits any more", async || {
        let figures = watched.figures().await?;
        Ok(["verbatim_supplier_at_work", "verbatim_supplier_in_line", "verbatim_fetches"]
            .iter()
            .all(|name| figures.sum(name, &[]).abs() < 1e-9))
    })
    .await
}

/// A supplier that keeps failing rests, and that is seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_supplier_that_rests_is_seen() -> Result<()> {
    // Nothing that a proxy without a script answers can be read.
    let proxy = platform(&[], Duration::ZERO)?;
    let data = TempDir::new()?;
    let mut settings = settings(&proxy);
    settings.push(("VERBATIM_SUPPLIERS__REST_AFTER".to_owned(), "2".to_owned()));
    settings.push(("VERBATIM_UPSTREAM__RETRIES".to_owned(), "0".to_owned()));
    let settings = borrowed(&settings);
    let watched = Watched::start(&data, &settings).await?;
    let key = keys(&data, 1)?.remove(0);
    for video in ["failing-000", "failing-001", "failing-002"] {
        let reply = watched.server.get_as(&key, &format!("/api/transcript?v={video}")).await?;
        assert_eq!(reply.json()["available"], false, "{}", reply.text());
    }
    let figures = watched.figures().await?;
    let captions = [("supplier", "youtube-captions"), ("platform", "video_site")];
    let sum = |name: &str| figures.sum(name, &captions);
    assert!((sum("verbatim_supplier_resting") - 1.0).abs() < 1e-9);
    assert!((sum("verbatim_supplier_rests_total") - 1.0).abs() < 1e-9);
    assert!((sum("verbatim_supplier_fetches_total") - 3.0).abs() < 1e-9);
    let not_asked = figures.sum("verbatim_supplier_fetches_total", &[("outcome", "not_asked")]);
    assert!((not_asked - 1.0).abs() < 1e-9, "{not_asked}");
    // What was logged of a fetch names the request that it was for.
    let log = watched.log()?;
    let line = log.lines().find(|line| line.contains("no transcript supplier=")).unwrap_or_default();
    assert!(line.contains("request{request_id="), "{log}");
    Ok(())
}
