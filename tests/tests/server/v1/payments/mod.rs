//! Payments over HTTP: with a stateful fake Stripe, and in the sandbox.

mod events;
mod journey;
mod plans;
mod sandbox;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::mail_client::{MailClient, create_account};
use crate::{
    server::harness::{ServerFixture, ServerReply, audit_ledger, sqlite},
    stripe::fake::{FakeEvent, FakeStripe, KEY, SECRET},
};

/// A server with Stripe payments, and an account of it.
struct PurchaseFixture {
    stripe: FakeStripe,
    data: TempDir,
    settings: BTreeMap<String, String>,
    server: ServerFixture,
    key: String,
}

/// The settings of a server with payments at this Stripe.
fn settings(stripe: &FakeStripe) -> BTreeMap<String, String> {
    let settings = [
        ("VERBATIM_STRIPE__SECRET_KEY", KEY),
        ("VERBATIM_STRIPE__WEBHOOK_SECRETS", SECRET),
        ("VERBATIM_STRIPE__API_URL", stripe.url()),
        ("VERBATIM_PLANS__STARTER__PRICE_USD", "9"),
        ("VERBATIM_PLANS__PRO__PRICE_USD", "29"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "10000"),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn start(data: &TempDir, settings: &BTreeMap<String, String>) -> Result<ServerFixture> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ServerFixture::start(data, &settings)
}

impl PurchaseFixture {
    async fn start() -> Result<Self> {
        let (stripe, data) = (FakeStripe::start().await?, TempDir::new()?);
        let settings = settings(&stripe);
        let server = start(&data, &settings)?;
        let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
        Ok(Self { stripe, data, settings, server, key })
    }

    /// Stops the server, changes its data, and starts it again.
    fn restart(&mut self, change: impl FnOnce(&TempDir) -> Result<()>) -> Result<()> {
        ensure!(self.server.stop()?.success(), "the server did not end well");
        change(&self.data)?;
        self.server = start(&self.data, &self.settings)?;
        Ok(())
    }

    /// Requests a checkout session and returns its order.
    async fn open_order(&self, path: &str, body: &str) -> Result<String> {
        let reply = post(&self.server, &self.key, path, body).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        let url = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        let session = url.rsplit('/').next().unwrap_or_default();
        let order = self.stripe.object(session)["client_reference_id"].as_str().map(str::to_owned);
        order.with_context(|| format!("no checkout at {url}"))
    }

    async fn buy(&self, pack: &str) -> Result<String> {
        self.open_order("buy-credits", &json!({ "pack": pack }).to_string()).await
    }

    async fn subscribe(&self, plan: &str) -> Result<String> {
        self.open_order("subscribe", &json!({ "plan": plan }).to_string()).await
    }

    /// Sends events as Stripe does; the server accepts all of them.
    async fn deliver(&self, events: &[FakeEvent]) -> Result<()> {
        for event in events {
            let reply = send_event(&self.server, &event.signature(), event.body.clone()).await?;
            ensure!(reply.status == 200, "{}: {}", event.kind, reply.text());
        }
        Ok(())
    }

    /// Plan and remaining credits.
    async fn status(&self) -> Result<(String, u64)> {
        account_status(&self.server, &self.key).await
    }

    /// Runs the operator's audit and checks that the ledger is consistent.
    fn audit_ledger(&self) -> Result<()> {
        audit_ledger(self.data.path(), &[])
    }
}

async fn post(server: &ServerFixture, key: &str, path: &str, body: &str) -> Result<ServerReply> {
    server.post_as(key, &format!("/api/v1/{path}"), body.to_owned()).await
}

async fn send_event(server: &ServerFixture, signature: &str, body: String) -> Result<ServerReply> {
    let headers = [("stripe-signature", signature), ("content-type", "application/json; charset=utf-8")];
    server.send(Method::POST, "/api/v1/webhooks/stripe", &headers, body).await
}

async fn account_status(server: &ServerFixture, key: &str) -> Result<(String, u64)> {
    let reply = server.get_as(key, "/api/v1/me").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let me = reply.json();
    let plan = me["plan"].as_str().context("no plan")?.to_owned();
    Ok((plan, me["credits_remaining"].as_u64().context("no credits_remaining")?))
}

fn title(page: &ServerReply) -> String {
    let text = page.text();
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(|| text.clone(), |(title, _)| title.to_owned())
}

/// Moves the creation of every order back in time.
fn age_orders(data: &TempDir, millis: u64) -> Result<()> {
    let change = format!("UPDATE orders SET created_at = created_at - {millis}");
    sqlite(&data.path().join("verbatim.db"), &change).map(drop)
}
