//! Webhooks of jobs, sent to a receiver on this machine.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{call, delayed, job, receiver::WebhookReceiver, serve, start_platform, videos, wait_for_status};
use crate::{
    server::{
        harness::{ServerFixture, wait_until},
        v1::mail_client::{MailClient, create_account},
    },
    service::fake::FakeReply,
};

const ALLOW_PRIVATE: (&str, &str) = ("VERBATIM_WEBHOOKS__ALLOW_PRIVATE", "true");

/// Starts a job with a callback address; returns its id.
async fn start_job(server: &ServerFixture, key: &str, videos: &[String], url: &str) -> Result<String> {
    let reply = call(server, key, Method::POST, "", &json!({ "urls": videos, "callback_url": url })).await?;
    ensure!(reply.status == 202, "{}", reply.text());
    assert_eq!(reply.json()["callback_url"], url);
    reply.json()["job_id"].as_str().map(str::to_owned).context("no job_id")
}

/// The secret of an account, with the other fields of its response.
async fn secret(server: &ServerFixture, key: &str, method: Method, path: &str) -> Result<(String, Value)> {
    let path = format!("/api/v1/webhook-secret{path}");
    let reply = server.send_as(key, method, &path, &[], "").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    Ok((reply.json()["secret"].as_str().context("no secret")?.to_owned(), reply.json()))
}

/// The delivery log of the only event of a job.
async fn delivery(server: &ServerFixture, key: &str, id: &str) -> Result<Value> {
    let reply = call(server, key, Method::GET, &format!("/{id}/deliveries"), &Value::Null).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let log = reply.json();
    assert_eq!(log["events"].as_array().map(Vec::len), Some(1), "{log}");
    Ok(log["events"][0].clone())
}

/// Waits until the log of the only event of a job has this many attempts.
async fn wait_for_attempts(server: &ServerFixture, key: &str, id: &str, count: usize) -> Result<Value> {
    let mut last = Value::Null;
    wait_until("the attempt was not recorded", async || {
        last = delivery(server, key, id).await?;
        Ok(last["attempts"].as_array().is_some_and(|attempts| attempts.len() >= count))
    })
    .await?;
    Ok(last)
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_webhook_is_repeated_with_same_id_and_signed() -> Result<()> {
    let videos = videos("hooked-", 1);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = serve(&data, &proxy, &[ALLOW_PRIVATE])?;
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    let other = create_account(&server, &mut outbox, "bob@example.org").await?;
    let (first, shown) = secret(&server, &key, Method::GET, "").await?;
    assert!(first.starts_with("vbw_") && first.len() == 68, "{first}");
    assert_eq!((&shown["rotated_at"], &shown["previous_valid_until"]), (&Value::Null, &Value::Null));
    assert_ne!(secret(&server, &other, Method::GET, "").await?.0, first, "each account has its own");
    let reply = |number| FakeReply::new(if number == 0 { 500 } else { 204 }, "", "");
    let mut receiver = WebhookReceiver::start(reply).await?;
    let id = start_job(&server, &key, &videos, &receiver.url).await?;
    let call = receiver.next().await?;
    assert_eq!((call.path(), call.signatures(), call.verify(&first)), ("/hook", 1, Ok(())));
    let (second, rotated) = secret(&server, &key, Method::POST, "/rotate").await?;
    assert!(second != first && rotated["previous_valid_until"].is_string(), "{rotated}");
    let event = call.event()?;
    assert_eq!(event["type"], "job.completed");
    assert_eq!(event["job"], job(&server, &key, &id).await?, "as its address shows it");
    let repeat = receiver.next().await?;
    assert_eq!(repeat.event()?, event, "the same event again");
    assert_eq!((repeat.signatures(), repeat.verify(&first), repeat.verify(&second)), (2, Ok(()), Ok(())));
    let log = wait_for_attempts(&server, &key, &id, 2).await?;
    assert_eq!((&log["id"], &log["state"]), (&event["id"], &json!("delivered")));
    let attempts = log["attempts"].as_array().context("no attempts")?;
    let error = "the host answered with status 500";
    assert_eq!((&attempts[0]["status"], &attempts[0]["error"]), (&json!(500), &json!(error)));
    assert_eq!((&attempts[1]["status"], &attempts[1]["error"]), (&json!(204), &Value::Null));
    assert!(receiver.rest().is_empty());
    let foreign = format!("/{id}/deliveries");
    assert_eq!(super::call(&server, &other, Method::GET, &foreign, &Value::Null).await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_survives_kill_and_hanging_host_delays_no_other_account() -> Result<()> {
    let videos = videos("hanging", 1);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let mut server = serve(&data, &proxy, &[ALLOW_PRIVATE])?;
    let ann = create_account(&server, &mut outbox, "ann@example.org").await?;
    let bob = create_account(&server, &mut outbox, "bob@example.org").await?;
    let reply = |number| if number == 0 { FakeReply::Never } else { FakeReply::new(200, "", "") };
    let mut hanging = WebhookReceiver::start(reply).await?;
    let redirect = |_| FakeReply::new(302, "location: /elsewhere\r\n", "");
    let mut quick = WebhookReceiver::start(redirect).await?;
    let id = start_job(&server, &ann, &videos, &hanging.url).await?;
    let interrupted = hanging.next().await?.event()?;
    let redirected = start_job(&server, &bob, &videos, &quick.url).await?;
    quick.next().await?;
    let log = wait_for_attempts(&server, &bob, &redirected, 1).await?;
    let error = "the host answered with status 302; redirects are not followed";
    assert_eq!((&log["state"], &log["attempts"][0]["error"]), (&json!("pending"), &json!(error)));
    server.kill()?;
    server = serve(&data, &proxy, &[ALLOW_PRIVATE])?;
    let repeat = hanging.next().await?.event()?;
    assert_eq!(repeat["id"], interrupted["id"]);
    wait_until("the delivery was not recorded", async || {
        Ok(delivery(&server, &ann, &id).await?["state"] == "delivered")
    })
    .await?;
    assert!(quick.rest().iter().all(|call| call.path() == "/hook"), "a redirect was followed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_to_private_address_is_refused() -> Result<()> {
    let videos = videos("private", 1);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let mut server = serve(&data, &proxy, &[ALLOW_PRIVATE])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut receiver = WebhookReceiver::start(|_| FakeReply::new(500, "", "")).await?;
    let id = start_job(&server, &key, &videos, &receiver.url).await?;
    receiver.next().await?;
    assert!(server.stop()?.success());
    receiver.rest();
    server = serve(&data, &proxy, &[])?;
    let log = wait_for_attempts(&server, &key, &id, 2).await?;
    let last = log["attempts"].as_array().and_then(|attempts| attempts.last()).context("no attempt")?;
    let error = "the callback address is not allowed: it must be an https address";
    assert_eq!((&last["status"], &last["error"]), (&Value::Null, &json!(error)));
    assert!(receiver.rest().is_empty(), "the address was called");
    let port = receiver.url.rsplit_once(':').context("no port")?.1;
    for url in [
        receiver.url.clone(),
        format!("https://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        "https://user:word@example.org/".to_owned(),
        format!("https://example.org/{}", "a".repeat(2_048)),
        "not an address".to_owned(),
    ] {
        let body = json!({ "urls": videos, "callback_url": url });
        let reply = call(&server, &key, Method::POST, "", &body).await?;
        let error = reply.json()["error"].to_string();
        assert!(reply.status == 400 && error.starts_with("\"callback_url: "), "{url}: {error}");
    }
    // A public name, which this machine cannot reach.
    let id = start_job(&server, &key, &videos, "https://hooks.example.invalid/verbatim").await?;
    wait_for_status(&server, &key, &id, "completed").await?;
    let log = wait_for_attempts(&server, &key, &id, 1).await?;
    assert_eq!(log["attempts"][0]["error"], "the host name could not be resolved");
    Ok(())
}
