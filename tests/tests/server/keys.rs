//! Keys over HTTP and on the command line: paid plans, their end and renewal, limits, revocation.

pub(super) mod issuer;
mod mint;
mod operator;
mod plus;

use anyhow::{Result, bail};
use http::Method;
use tempfile::TempDir;

use super::harness::{ServerFixture, ServerReply};
use issuer::TestIssuer;

const ENTITLEMENT: &str = "x-verbatim-entitlement";

/// A server that trusts an issuer, with these further settings.
fn serve(data: &TempDir, issuer: &TestIssuer, settings: &[(&str, &str)]) -> Result<ServerFixture> {
    let keys = issuer.key_set();
    ServerFixture::start(data, &[settings, &[("VERBATIM_ENTITLEMENT__KEYS", keys.as_str())]].concat())
}

/// Requests a new key with a proof.
async fn mint(server: &ServerFixture, proof: &str) -> Result<ServerReply> {
    server.send(Method::POST, "/api/keys", &[(ENTITLEMENT, proof)], "").await
}

/// Requests a new key with a proof and returns the key.
async fn mint_key(server: &ServerFixture, proof: &str) -> Result<String> {
    let reply = mint(server, proof).await?;
    match reply.json()["key"].as_str() {
        Some(key) => Ok(key.to_owned()),
        None => bail!("no key: {}", reply.text()),
    }
}

/// Sends a request with a key and a proof.
async fn call(server: &ServerFixture, path: &str, key: &str, proof: &str) -> Result<ServerReply> {
    server.send_as(key, Method::GET, path, &[(ENTITLEMENT, proof)], "").await
}
