//! The metrics equal what happened.

use std::{process::Command, sync::Arc, time::Duration};

use anyhow::Result;
use http::Method;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::{ObservedServer, ScrapedFigures};
use crate::{
    install::installed,
    server::{
        harness::{borrow_settings, create_keys, run_ok, wait_until},
        platform::{gated_platform, platform_settings, start_platform},
        v1::mail_client::{MailClient, create_account},
    },
};

const VIDEO: &str = "dyke-walk-0";
const OTHER: &str = "dyke-walk-1";

const RULES: &str = include_str!("../../../../deploy/prometheus-rules.yml");
const GUIDE: &str = include_str!("../../../../docs/operations.md");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana-dashboard.json");

fn metric_names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("verbatim_") || word.starts_with("process_"))
}

/// Checks the sum of the samples with these labels.
fn check_sum(figures: &ScrapedFigures, name: &str, labels: &[(&str, &str)], expect: f64) {
    let found = figures.sum(name, labels);
    assert!((found - expect).abs() < 1e-9, "{name} {labels:?} is {found}, not {expect}");
}

/// Checks the requests by route and status.
fn check_requests(figures: &ScrapedFigures) {
    let check_sum = |name: &str, labels: &[(&str, &str)], expect| check_sum(figures, name, labels, expect);
    let requests = "verbatim_http_requests_total";
    check_sum(requests, &[("route", "/api/transcript"), ("status", "200")], 6.0);
    check_sum(requests, &[("route", "/api/transcript"), ("status", "400")], 1.0);
    check_sum(requests, &[("route", "/api/v1/transcript"), ("status", "200")], 3.0);
    check_sum(requests, &[("route", "/api/v1/transcript"), ("status", "500")], 1.0);
    check_sum(requests, &[("route", "/api/v1/me"), ("status", "401")], 1.0);
    check_sum(requests, &[("route", "none"), ("status", "404")], 200.0);
    check_sum(requests, &[("route", "/health"), ("status", "405")], 1.0);
    check_sum("verbatim_http_request_duration_seconds_count", &[("route", "none")], 200.0);
    let whole = [("route", "/api/transcript"), ("le", "+Inf")];
    check_sum("verbatim_http_request_duration_seconds_bucket", &whole, 7.0);
    assert!(figures.sum("verbatim_http_connections", &[]) >= 1.0);
}

/// Checks the origins of transcripts and the supplier fetches.
fn check_lookups(figures: &ScrapedFigures) {
    let check_sum = |name: &str, labels: &[(&str, &str)], expect| check_sum(figures, name, labels, expect);
    let answers = "verbatim_transcript_answers_total";
    check_sum(answers, &[("api", "lookup")], 6.0);
    check_sum(answers, &[("api", "lookup"), ("from", "nothing")], 1.0);
    check_sum(answers, &[("api", "lookup"), ("from", "fetched")], 1.0);
    assert!(figures.sum(answers, &[("api", "lookup"), ("from", "ready")]) >= 1.0);
    check_sum(answers, &[("api", "v1")], 4.0);
    check_sum(answers, &[("api", "v1"), ("from", "fetched")], 1.0);
    check_sum(answers, &[("api", "v1"), ("from", "nothing")], 1.0);
    let unanswered = "verbatim_unanswered_lookups_total";
    check_sum(unanswered, &[("api", "lookup"), ("reason", "needs_verification")], 1.0);
    check_sum(unanswered, &[("api", "v1"), ("reason", "fetch_error")], 1.0);
    check_sum(unanswered, &[], 2.0);

    let captions = ("supplier", "youtube-captions");
    check_sum("verbatim_supplier_fetches_total", &[captions, ("outcome", "transcript")], 2.0);
    check_sum("verbatim_supplier_fetches_total", &[captions, ("platform", "video_site")], 3.0);
    check_sum("verbatim_supplier_fetch_seconds_count", &[captions], 3.0);
    check_sum("verbatim_supplier_active", &[], 0.0);
    check_sum("verbatim_fetches", &[], 0.0);
}

/// Checks the ledger operations and the state of the server.
fn check_ledger_and_server(figures: &ScrapedFigures) {
    let check_sum = |name: &str, labels: &[(&str, &str)], expect| check_sum(figures, name, labels, expect);
    // One hold of a key and the service. Of an account one that was settled and one that was released, each with one of
    // the daily cap of accounts, which a failed fetch also counts for.
    let steps = "verbatim_ledger_operations_total";
    check_sum(steps, &[("step", "hold"), ("result", "done")], 5.0);
    check_sum(steps, &[("step", "settle"), ("result", "done")], 4.0);
    check_sum(steps, &[("step", "release"), ("result", "done")], 1.0);
    check_sum(steps, &[("step", "spend"), ("result", "done")], 2.0);
    check_sum("verbatim_ledger_amount_total", &[("step", "settle")], 5.0);
    check_sum("verbatim_ledger_amount_total", &[("step", "spend")], 2.0);

    check_sum("verbatim_ready", &[], 1.0);
    check_sum("verbatim_store_answers", &[], 2.0);
    check_sum("verbatim_store_writable", &[], 2.0);
    check_sum("verbatim_store_errors_total", &[], 0.0);
    assert!(figures.sum("verbatim_store_free_bytes", &[]) > 0.0);
    assert!(figures.sum("verbatim_ready_bodies_size_bytes", &[("api", "lookup")]) > 0.0);
    check_sum("verbatim_mail_attempts_total", &[("result", "sent")], 1.0);
    check_sum("verbatim_mail_attempts_total", &[], 1.0);
    check_sum("verbatim_log_lines_dropped_total", &[], 0.0);
    check_sum("verbatim_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    assert!(figures.sum("process_resident_memory_bytes", &[]) > 1e6);
    assert!(figures.samples().count() < 600, "{}", figures.samples().count());
    for name in metric_names(RULES).chain(metric_names(DASHBOARD)) {
        assert!(figures.has(name), "{name} is used by the rules or the dashboard, but is no metric");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_equal_performed_requests() -> Result<()> {
    let proxy = start_platform(&[VIDEO, OTHER], Duration::ZERO)?;
    let data = TempDir::new()?;
    let settings = platform_settings(&proxy);
    let settings = borrow_settings(&settings);
    let observed = ObservedServer::start(&data, &settings).await?;
    let (server, mut outbox) = (&observed.server, MailClient::new(&data));
    let before = observed.scrape().await?;
    assert_eq!(
        before.sum("verbatim_supplier_breaker_open", &[("supplier", "youtube-captions")]).to_bits(),
        0
    );
    assert!(before.has("verbatim_supplier_breaker_open"), "a supplier without a request has no metric");

    let look_up = format!("/api/transcript?v={VIDEO}");
    let key = create_keys(&data, 1)?.remove(0);
    // Not found without a key, fetched with one, then archived, in another form, and cached.
    assert_eq!(server.get(&look_up).await?.json()["failureReason"], "needs_verification");
    assert_eq!(server.get_as(&key, &look_up).await?.json()["fromCache"], false);
    for format in ["", "&format=text", "", ""] {
        assert_eq!(server.get(&format!("{look_up}{format}")).await?.status, 200);
    }
    assert_eq!(server.get("/api/transcript").await?.status, 400);
    let account = create_account(server, &mut outbox, "ann@example.org").await?;
    for video in [OTHER, OTHER, VIDEO, "not-there-0"] {
        server.get_as(&account, &format!("/api/v1/transcript?video_id={video}")).await?;
    }
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    for index in 0..200 {
        let path = format!("/{index}/%0a%22}}{{verbatim_up%201");
        assert_eq!(server.get(&path).await?.status, 404);
    }
    let sent = server.send(Method::POST, "/health", &[], "").await?;
    assert_eq!(sent.status, 405);

    // Mails are sent, and holds released, after the response.
    wait_until("mails are queued or holds open", async || {
        let figures = observed.scrape().await?;
        let sum = |name: &str, labels: &[(&str, &str)]| figures.sum(name, labels);
        let settled =
            ["settle", "release"].map(|step| sum("verbatim_ledger_operations_total", &[("step", step)]));
        Ok(sum("verbatim_mail_queued", &[]) == 0.0
            && sum("verbatim_mail_attempts_total", &[]) >= 1.0
            && settled.iter().sum::<f64>() >= 5.0)
    })
    .await?;
    let figures = observed.scrape().await?;
    check_requests(&figures);
    check_lookups(&figures);
    check_ledger_and_server(&figures);
    assert_eq!(observed.get("/nothing").await?.status, 404);
    assert_eq!(server.get("/metrics").await?.status, 404, "the public listener serves the metrics");
    let log = observed.wait_for_log("GET /api/transcript").await?;
    assert!(!log.contains("200 GET /metrics"), "{log}");
    Ok(())
}

/// The alerts fire for their cause.
#[test]
fn alerts_fire_for_their_cause() -> Result<()> {
    let promtool = installed("operations")?.with_file_name("promtool");
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/operations/rules_test.yml");
    let mut command = Command::new(promtool);
    command.args(["test", "rules", rules]);
    run_ok(command, b"").map(drop)
}

#[test]
fn guide_describes_every_alert() {
    let alerts: Vec<&str> = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    let symptoms: Vec<&str> =
        GUIDE.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next()).collect();
    for alert in alerts {
        let name = format!("`{alert}`");
        assert!(symptoms.iter().any(|symptom| symptom.contains(&name)), "{alert} is not in the guide");
    }
}

/// Queued fetches and the callers of a fetch are counted.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_queued_fetches_and_callers() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO, OTHER], &gate)?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_YOUTUBE__MAX_CONCURRENT_VIDEOS".to_owned(), "1".to_owned()));
    let settings = borrow_settings(&settings);
    let observed = ObservedServer::start(&data, &settings).await?;
    let key = create_keys(&data, 1)?.remove(0);
    let request =
        async |video: &str| observed.server.get_as(&key, &format!("/api/transcript?v={video}")).await;
    let observation = async {
        let expect = [
            ("verbatim_supplier_active", 1.0),
            ("verbatim_supplier_queued", 1.0),
            ("verbatim_fetches", 2.0),
            ("verbatim_fetch_callers", 1.0),
        ];
        wait_until("the queued fetches are not counted", async || {
            let figures = observed.scrape().await?;
            Ok(expect.iter().all(|(name, value)| (figures.sum(name, &[]) - value).abs() < 1e-9))
        })
        .await?;
        gate.add_permits(1);
        Ok(())
    };
    let (first, second, joined, observation) =
        tokio::join!(request(VIDEO), request(OTHER), request(VIDEO), observation);
    let observation: Result<()> = observation;
    observation?;
    for reply in [first?, second?, joined?] {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    wait_until("fetches are still counted", async || {
        let figures = observed.scrape().await?;
        Ok(["verbatim_supplier_active", "verbatim_supplier_queued", "verbatim_fetches"]
            .iter()
            .all(|name| figures.sum(name, &[]).abs() < 1e-9))
    })
    .await
}

/// A fetch that outlasts the wait is a 500 of the v1 API, but no fault of the server.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_v1_fetch_in_progress_as_fetch_error() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO], &gate)?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_LIMITS__WAIT".to_owned(), "200ms".to_owned()));
    let settings = borrow_settings(&settings);
    let observed = ObservedServer::start(&data, &settings).await?;
    let account = create_account(&observed.server, &mut MailClient::new(&data), "ann@example.org").await?;
    let lookup = observed.server.get_as(&account, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
    let question = format!(r#"{{"video_id":"{VIDEO}","message":"What keeps the grass short?"}}"#);
    let chat = observed.server.post_as(&account, "/api/v1/chat", question).await?;
    for reply in [lookup, chat] {
        let detail = reply.header("x-failure-detail");
        assert_eq!((reply.status.as_u16(), detail), (500, "still_working"), "{}", reply.text());
    }
    let figures = observed.scrape().await?;
    for api in ["v1", "chat"] {
        check_sum(&figures, "verbatim_transcript_answers_total", &[("api", api), ("from", "nothing")], 1.0);
        let unanswered = "verbatim_unanswered_lookups_total";
        check_sum(&figures, unanswered, &[("api", api), ("reason", "fetch_error")], 1.0);
        check_sum(&figures, unanswered, &[("api", api)], 1.0);
    }
    gate.add_permits(1);
    Ok(())
}

/// The breaker of a supplier that keeps failing opens, and the metrics show it.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_open_breaker() -> Result<()> {
    // The proxy has no script, so every response is invalid for the supplier.
    let proxy = start_platform(&[], Duration::ZERO)?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_SUPPLIERS__BREAKER_THRESHOLD".to_owned(), "2".to_owned()));
    settings.push(("VERBATIM_UPSTREAM__RETRIES".to_owned(), "0".to_owned()));
    let settings = borrow_settings(&settings);
    let observed = ObservedServer::start(&data, &settings).await?;
    let key = create_keys(&data, 1)?.remove(0);
    for video in ["failing-000", "failing-001", "failing-002"] {
        let reply = observed.server.get_as(&key, &format!("/api/transcript?v={video}")).await?;
        assert_eq!(reply.json()["available"], false, "{}", reply.text());
    }
    let figures = observed.scrape().await?;
    let captions = [("supplier", "youtube-captions"), ("platform", "video_site")];
    let sum = |name: &str| figures.sum(name, &captions);
    assert!((sum("verbatim_supplier_breaker_open") - 1.0).abs() < 1e-9);
    assert!((sum("verbatim_supplier_breaker_opened_total") - 1.0).abs() < 1e-9);
    assert!((sum("verbatim_supplier_fetches_total") - 3.0).abs() < 1e-9);
    let not_requested = figures.sum("verbatim_supplier_fetches_total", &[("outcome", "not_asked")]);
    assert!((not_requested - 1.0).abs() < 1e-9, "{not_requested}");
    // Log lines of a fetch name the request that caused it.
    let log = observed.wait_for_log("no transcript supplier=").await?;
    let line = log.lines().find(|line| line.contains("no transcript supplier=")).unwrap_or_default();
    assert!(line.contains("request{request_id="), "{log}");
    Ok(())
}
