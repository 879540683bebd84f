//! Who may use the admin API.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{AdminServer, TestStorage};
use crate::server::harness::{ServerFixture, create_keys, send_once_with};

#[tokio::test(flavor = "multi_thread")]
async fn admin_api_is_off_by_default() -> Result<()> {
    let storage = TestStorage::Files(TempDir::new()?);
    let token = storage.stdout(&["admin-tokens", "create", "ann"])?.trim().to_owned();
    let log = storage.data().path().join("log");
    let server = ServerFixture::start_with_log(storage.data(), &[("VERBATIM_LOG__LEVEL", "info")], &log)?;
    for path in ["/admin/keys", "/admin/openapi.json", "/admin"] {
        assert_eq!(server.get_as(&token, path).await?.status, 404, "{path}");
    }
    assert!(!std::fs::read_to_string(&log)?.contains("admin API"));
    assert_eq!(server.get_as(&token, "/api/keys/me").await?.status, 401, "an admin token is no API key");
    assert_eq!(server.get_as(&token, "/api/v1/me").await?.status, 401);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_api_needs_a_live_token() -> Result<()> {
    for storage in TestStorage::all()? {
        let admin = AdminServer::start(&storage).await?;
        let second = storage.stdout(&["admin-tokens", "create", "ben"])?.trim().to_owned();
        assert!(second.starts_with("vbo_") && second != admin.token, "{second}");
        let key = storage.stdout(&["keys", "create"])?.trim().to_owned();
        let send = async |authorization: Option<String>, path: &str| {
            let headers: Vec<_> =
                authorization.iter().map(|value| ("authorization", value.as_str())).collect();
            send_once_with(&admin.address, Method::GET, path, &headers, "").await
        };
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        assert_eq!(send(bearer(&second), "/admin/keys").await?.status, 200);
        storage.stdout(&["admin-tokens", "revoke", "ben"])?;
        let (kept, last) = admin.token.split_at(admin.token.len() - 1);
        let changed = format!("{kept}{}", if last == "x" { "y" } else { "x" });
        let refused = [
            None,
            bearer(""),
            bearer("wrong"),
            bearer(&changed),
            bearer(&key),
            bearer(&second),
            Some(format!("Basic {}", admin.token)),
            Some(admin.token.clone()),
        ];
        for authorization in refused {
            for path in ["/admin/keys", "/admin/openapi.json", "/admin/unknown", "/"] {
                let reply = send(authorization.clone(), path).await?;
                assert_eq!(reply.status, 401, "{authorization:?} {path}");
                assert!(reply.header("www-authenticate").starts_with("Bearer realm="));
                assert_eq!(reply.json()["code"], 401);
                assert!(reply.json()["error"].as_str().is_some_and(|error| error.ends_with('.')));
                assert_eq!(reply.header("access-control-allow-origin"), "");
            }
        }
        let tokens = storage.json(&["admin-tokens", "list", "--json"])?;
        assert_eq!((&tokens[0]["name"], &tokens[0]["revokedAt"]), (&json!("ann"), &Value::Null));
        assert!(tokens[1]["revokedAt"].is_string());
        let table = storage.stdout(&["admin-tokens", "list"])?;
        assert!(table.contains("ann") && !table.contains("vbo_"), "{table}");
        storage.command(&["admin-tokens", "create", "ben"], 1)?;
        storage.command(&["admin-tokens", "create", "no spaces"], 2)?;
        storage.command(&["admin-tokens", "revoke", "ben"], 1)?;
        // A store holds the digest only.
        let log = std::fs::read_to_string(storage.data().path().join("log"))?;
        assert!(!log.contains(&admin.token[4..]), "a token is in the log");
    }
    Ok(())
}

/// A request without a token is refused before its body arrives.
#[tokio::test(flavor = "multi_thread")]
async fn admin_body_is_not_read_without_token() -> Result<()> {
    let storage = TestStorage::Files(TempDir::new()?);
    let admin = AdminServer::start(&storage).await?;
    let mut stream = TcpStream::connect(&admin.address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let head = format!(
        "POST /admin/keys HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000000000\r\n\r\n{{",
        admin.address
    );
    stream.write_all(head.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");

    let large = json!({ "label": "x".repeat(17 * 1024) });
    assert_eq!(admin.send("POST", "/admin/keys", large).await?.status, 413);
    let authorization = format!("Bearer {}", admin.token);
    let headers = [("authorization", authorization.as_str()), ("content-encoding", "gzip")];
    let encoded = send_once_with(&admin.address, Method::POST, "/admin/keys", &headers, "{}").await?;
    assert_eq!((encoded.status.as_u16(), encoded.header("accept-encoding")), (415, "identity"));
    assert_eq!(encoded.json()["code"], 415);
    let headers = [("authorization", authorization.as_str()), ("host", "attacker.example")];
    let other = send_once_with(&admin.address, Method::GET, "/admin/keys", &headers, "").await?;
    assert_eq!(other.status, 421, "a page of another host reaches the admin API");
    assert_eq!(create_keys(storage.data(), 1)?.len(), 1);
    Ok(())
}

#[test]
fn admin_command_help_has_examples() -> Result<()> {
    let storage = TestStorage::Files(TempDir::new()?);
    for arguments in [
        &["keys", "create"][..],
        &["keys", "set"],
        &["accounts", "create"],
        &["admin-tokens", "create"],
        &["audit-log"],
    ] {
        let help = storage.stdout(&[arguments, &["--help"]].concat())?;
        assert!(help.contains("Examples:\n"), "{help}");
        assert!(help.contains(&format!("verbatim {}", arguments.join(" "))), "{help}");
    }
    Ok(())
}
