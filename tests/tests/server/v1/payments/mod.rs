//! Buying over HTTP: at a Stripe that remembers, and in the sandbox.

mod events;
mod journey;
mod plans;
mod sandbox;

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::post::{Outbox, account};
use crate::{
    server::harness::{Reply, Server, run, verbatim},
    stripe::fake::{Event, KEY, SECRET, Stripe},
};

/// A server that sells at a Stripe, and one account of it.
struct Shop {
    stripe: Stripe,
    data: TempDir,
    settings: BTreeMap<String, String>,
    server: Server,
    key: String,
}

/// The settings with which a server sells at this Stripe.
fn settings(stripe: &Stripe) -> BTreeMap<String, String> {
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

fn start(data: &TempDir, settings: &BTreeMap<String, String>) -> Result<Server> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Server::start(data, &settings)
}

impl Shop {
    async fn open() -> Result<Self> {
        let (stripe, data) = (Stripe::start().await?, TempDir::new()?);
        let settings = settings(&stripe);
        let server = start(&data, &settings)?;
        let mut outbox = Outbox::of(&data);
        let key = account(&server, &mut outbox, "ann@example.org").await?;
        Ok(Self { stripe, data, settings, server, key })
    }

    /// Stops the server, does something, and starts it again.
    fn restart(&mut self, meanwhile: impl FnOnce(&TempDir) -> Result<()>) -> Result<()> {
        ensure!(self.server.stop()?.success(), "the server did not end well");
        meanwhile(&self.data)?;
        self.server = start(&self.data, &self.settings)?;
        Ok(())
    }

    /// Asks for a page; returns the order that is paid on it.
    async fn order(&self, path: &str, body: &str) -> Result<String> {
        let reply = post(&self.server, &self.key, path, body).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        let url = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        let session = url.rsplit('/').next().unwrap_or_default();
        let order = self.stripe.object(session)["client_reference_id"].as_str().map(str::to_owned);
        order.with_context(|| format!("no checkout at {url}"))
    }

    async fn buy(&self, pack: &str) -> Result<String> {
        self.order("buy-credits", &json!({ "pack": pack }).to_string()).await
    }

    async fn subscribe(&self, plan: &str) -> Result<String> {
        self.order("subscribe", &json!({ "plan": plan }).to_string()).await
    }

    /// Sends events as Stripe does; all are taken.
    async fn deliver(&self, events: &[Event]) -> Result<()> {
        for event in events {
            let reply = hear(&self.server, &event.signature(), event.body.clone()).await?;
            ensure!(reply.status == 200, "{}: {}", event.kind, reply.text());
        }
        Ok(())
    }

    /// The plan and what is left.
    async fn me(&self) -> Result<(String, u64)> {
        me(&self.server, &self.key).await
    }

    /// The ledger adds up, by the operator's own command.
    fn audited(&self) -> Result<()> {
        let audit = run(verbatim(self.data.path(), &["ledger", "audit"]), b"")?;
        ensure!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
        Ok(())
    }
}

async fn post(server: &Server, key: &str, path: &str, body: &str) -> Result<Reply> {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.send(Method::POST, &format!("/api/v1/{path}"), &headers, body.to_owned()).await
}

/// An event with this signature.
async fn hear(server: &Server, signature: &str, body: String) -> Result<Reply> {
    let headers = [("stripe-signature", signature), ("content-type", "application/json; charset=utf-8")];
    server.send(Method::POST, "/api/v1/webhooks/stripe", &headers, body).await
}

async fn me(server: &Server, key: &str) -> Result<(String, u64)> {
    let reply = server.get_as(key, "/api/v1/me").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let me = reply.json();
    let plan = me["plan"].as_str().context("no plan")?.to_owned();
    Ok((plan, me["credits_remaining"].as_u64().context("no credits_remaining")?))
}

/// The title of a page.
fn title(page: &Reply) -> String {
    let text = page.text();
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(|| text.clone(), |(title, _)| title.to_owned())
}

/// Moves every order back in time, by the hand of somebody who waited that long.
fn age_orders(data: &TempDir, millis: u64) -> Result<()> {
    let change = format!("UPDATE orders SET created_at = created_at - {millis}");
    let status = Command::new("sqlite3").arg(data.path().join("verbatim.db")).arg(change).status()?;
    ensure!(status.success(), "the orders cannot be changed");
    Ok(())
}
