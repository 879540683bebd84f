//! Keys over HTTP and on the command line: paid plans, their end and renewal, limits, revoking.

mod issuer;
mod mint;
mod operator;
mod plus;

use anyhow::{Result, bail};
use http::Method;
use tempfile::TempDir;

use super::harness::{Reply, Server};
use issuer::Issuer;

const ENTITLEMENT: &str = "x-verbatim-entitlement";

/// A server that believes an issuer, with these settings beside.
fn serve(data: &TempDir, issuer: &Issuer, settings: &[(&str, &str)]) -> Result<Server> {
    let keys = issuer.key_set();
    Server::start(data, &[settings, &[("VERBATIM_ENTITLEMENT__KEYS", keys.as_str())]].concat())
}

/// Asks for a key with a proof.
async fn mint(server: &Server, proof: &str) -> Result<Reply> {
    server.send(Method::POST, "/api/keys", &[(ENTITLEMENT, proof)], "").await
}

/// A new key with a proof, in the clear.
async fn minted(server: &Server, proof: &str) -> Result<String> {
    let reply = mint(server, proof).await?;
    match reply.json()["key"].as_str() {
        Some(key) => Ok(key.to_owned()),
        None => bail!("no key: {}", reply.text()),
    }
}

/// Calls with a key and a proof.
async fn call(server: &Server, path: &str, key: &str, proof: &str) -> Result<Reply> {
    let bearer = format!("Bearer {key}");
    server.send(Method::GET, path, &[("authorization", &bearer), (ENTITLEMENT, proof)], "").await
}
