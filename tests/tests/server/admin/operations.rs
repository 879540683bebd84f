//! Every operation through the admin API and through the command, and what the audit log says of it.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{AdminServer, TestStorage};
use crate::server::harness::{EXAMPLE, sqlite};

const VIDEO: &str = "L1ghth0use1";

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("no text")
}

/// The user of the system who runs this test, as the audit log names them.
fn system_user() -> Result<String> {
    let output = std::process::Command::new("id").arg("-un").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Sends wrong requests about keys, over HTTP and by the command.
async fn refuse_wrong_keys(storage: &TestStorage, admin: &AdminServer, id: &str) -> Result<()> {
    let path = format!("/admin/keys/{id}");
    let wrong = [
        ("PATCH", path.as_str(), json!({}), 400),
        ("PATCH", &path, json!({ "quota": "many" }), 400),
        ("PATCH", &path, json!({ "expires": "soon" }), 400),
        ("PATCH", &path, json!({ "other": 1 }), 400),
        ("PATCH", &path, json!(["1/day", null]), 400),
        ("PATCH", "/admin/keys/key-unknown", json!({ "quota": "1/day" }), 404),
        ("DELETE", "/admin/keys/key-unknown", Value::Null, 404),
        ("DELETE", "/admin/keys/%ff", Value::Null, 404),
        ("GET", "/admin/accounts/%ff", Value::Null, 404),
        ("GET", "/admin/accounts/%ff/statement", Value::Null, 404),
        ("PATCH", "/admin/jobs/%ff", json!({ "paused": true }), 404),
        ("POST", "/admin/keys", json!({ "label": "x".repeat(101) }), 400),
        ("POST", "/admin/keys", json!({ "expires": "2001-01-01" }), 400),
        ("PUT", "/admin/keys", Value::Null, 405),
        ("GET", "/admin/keys?limit=0", Value::Null, 400),
        ("GET", "/admin/keys?limit=%2B5", Value::Null, 400),
        ("GET", "/admin/keys?limit=1&limit=2", Value::Null, 400),
        ("GET", "/admin/keys?Limit=3", Value::Null, 400),
        ("GET", "/admin/keys?after=nonsense", Value::Null, 400),
        ("GET", "/admin/jobs?after=", Value::Null, 400),
        ("GET", "/admin/nothing", Value::Null, 404),
    ];
    for (method, path, body, status) in wrong {
        let refused = admin.json(method, path, body.clone(), status).await?;
        assert_eq!(refused["code"], status, "{method} {path} {body}");
        assert!(text(&refused["error"])?.len() > 10, "{refused}");
    }
    for arguments in [&["--quota", "0/day"][..], &["--expires", "soon"], &["--expires", "2001-01-01"]] {
        storage.command(&[&["keys", "create"], arguments].concat(), 2)?;
    }
    storage.command(&["keys", "set", id], 2)?;
    storage.command(&["keys", "set", "key-unknown", "--no-quota"], 1)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_keys_are_managed_over_http_and_command() -> Result<()> {
    for storage in TestStorage::all()? {
        let admin = AdminServer::start(&storage).await?;
        let fields = json!({ "label": "shop", "email": "a@example.org", "quota": "3/day", "expires": "30d" });
        let made = admin.json("POST", "/admin/keys", fields, 201).await?;
        let (key, id) = (text(&made["key"])?.to_owned(), text(&made["id"])?.to_owned());
        storage.stdout(&["keys", "create", "--label", "second", "--quota", "20000/month"])?;

        let over_http = admin.get("/admin/keys").await?;
        assert_eq!(over_http["items"], storage.json(&["keys", "list", "--json"])?, "both interfaces agree");
        let [first, second] = [&over_http["items"][0], &over_http["items"][1]];
        assert_eq!((&first["quota"], &first["label"]), (&json!("3/day"), &json!("shop")));
        assert!(text(&first["expires"])?.ends_with('Z'));
        assert_eq!(
            first["requests"],
            json!({ "total": 0, "today": 0, "thisMonth": 0, "lastAt": Value::Null })
        );
        assert_eq!((&second["quota"], &second["expires"]), (&json!("20000/month"), &Value::Null));
        let page = admin.get("/admin/keys?limit=1").await?;
        let next = admin.get(&format!("/admin/keys?limit=1&after={}", text(&page["next"])?)).await?;
        assert_eq!((&page["items"][0], &next["items"][0]), (first, second));
        assert_eq!(next["next"], Value::Null);

        let path = format!("/admin/keys/{id}");
        admin.json("PATCH", &path, json!({ "quota": "7/month", "expires": Value::Null }), 204).await?;
        let changed = &admin.get("/admin/keys").await?["items"][0];
        assert_eq!((&changed["quota"], &changed["expires"]), (&json!("7/month"), &Value::Null));
        storage.stdout(&["keys", "set", &id, "--no-quota", "--expires", "2099-01-31"])?;
        let changed = &storage.json(&["keys", "list", "--json"])?[0];
        assert_eq!((&changed["quota"], &changed["expires"]), (&Value::Null, &json!("2099-01-31T00:00:00Z")));
        let table = storage.stdout(&["keys", "list"])?;
        assert!(table.contains("0/20000/month") && table.contains("2099-01-31T00:00:00Z"), "{table}");

        refuse_wrong_keys(&storage, &admin, &id).await?;
        assert_eq!(admin.server.get_as(&key, "/api/keys/me").await?.status, 200);
        admin.json("DELETE", &path, Value::Null, 204).await?;
        assert_eq!(admin.server.get_as(&key, "/api/keys/me").await?.status, 401);
        admin.json("DELETE", &path, Value::Null, 404).await?;
        // A key that was passed by mistake is in no entry.
        admin.json("DELETE", &format!("/admin/keys/{key}"), Value::Null, 404).await?;
        let entries = storage.audit_log()?;
        let user = system_user()?;
        for entry in [
            ["ann", "keys.create", &id, "done"],
            ["ann", "keys.list", "-", "done"],
            [&user, "keys.list", "-", "done"],
            ["ann", "keys.set", &id, "done"],
            [&user, "keys.set", &id, "done"],
            ["ann", "keys.revoke", &id, "done"],
            ["ann", "keys.revoke", &id, &format!("failed: no live key has the id {id:?}")],
            [&user, "admin-tokens.create", "ann", "done"],
        ] {
            assert!(entries.iter().any(|found| found == &entry), "{entry:?} is not in {entries:?}");
        }
        assert!(!format!("{entries:?}").contains(&key[4..]), "a key is in the audit log");
        assert!(!format!("{entries:?}").contains("a@example.org"), "an address is in the audit log");
    }
    Ok(())
}

/// Checks that the audit log has the operations on an account, without its name.
fn check_account_entries(storage: &TestStorage, id: &str) -> Result<()> {
    let entries = storage.audit_log()?;
    let user = system_user()?;
    for (operator, operation) in [
        ("ann", "accounts.create"),
        ("ann", "accounts.show"),
        ("ann", "accounts.grant"),
        ("ann", "accounts.revoke-grant"),
        ("ann", "accounts.statement"),
        ("ann", "accounts.export"),
        ("ann", "accounts.block"),
        (user.as_str(), "accounts.unblock"),
        ("ann", "accounts.new-key"),
        (&user, "accounts.new-key"),
        ("ann", "accounts.delete"),
    ] {
        let entry = [operator, operation, id, "done"];
        assert!(entries.iter().any(|found| found == &entry), "{entry:?} is not in {entries:?}");
    }
    let repeated = ["ann", "accounts.grant", id, "done: existed before or repeated"];
    assert!(entries.iter().any(|found| found == &repeated), "{entries:?}");
    assert!(!format!("{entries:?}").contains("Söhne"), "a name is in the audit log");
    let log = storage.stdout(&["audit-log", "--json"])?;
    assert!(log.contains("\"10 credits, grant ticket-1\""), "the id is not that of the request: {log}");
    Ok(())
}

/// Takes back the grant of 10 credits twice, over HTTP, and then by the command.
async fn revoke_grant(storage: &TestStorage, admin: &AdminServer, id: &str) -> Result<()> {
    let revoke = format!("/admin/accounts/{id}/grants/ticket-1");
    for _ in 0..2 {
        let revoked = admin.json("DELETE", &revoke, Value::Null, 200).await?;
        let amounts = ["revoked", "shortfall", "credits_remaining"].map(|name| &revoked[name]);
        assert_eq!(amounts, [10, 0, 699], "{revoked}");
    }
    let again = storage.stdout(&["accounts", "revoke-grant", id, "ticket-1"])?;
    let end = ": already revoked; 10 credits taken back; 699 credits left\n";
    assert!(again.ends_with(end), "{again}");
    for (account, grant) in [(id, "ticket-2"), ("shop", "ticket-1"), (id, "%ff")] {
        let path = format!("/admin/accounts/{account}/grants/{grant}");
        admin.json("DELETE", &path, Value::Null, 404).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_accounts_are_managed_over_http_and_command() -> Result<()> {
    for storage in TestStorage::all()? {
        storage.stdout(&["import", EXAMPLE, "--video", VIDEO, "--lang", "en"])?;
        let admin = AdminServer::start(&storage).await?;
        let fields = json!({ "name": "Example & Söhne", "credits": 500, "memo": "contract 17" });
        let made = admin.json("POST", "/admin/accounts", fields.clone(), 201).await?;
        let (key, id) = (text(&made["api_key"])?.to_owned(), text(&made["id"])?.to_owned());
        assert_eq!((&made["email"], &made["credits_remaining"]), (&json!("Example & Söhne"), &json!(700)));
        admin.json("POST", "/admin/accounts", fields, 409).await?;
        let other = storage.stdout(&["accounts", "create", "shop", "--credits", "5"])?;
        assert!(other.starts_with("vba_") && other.ends_with('\n'), "{other}");
        storage.command(&["accounts", "create", "shop"], 1)?;
        storage.command(&["accounts", "create", "ann@example.org"], 2)?;
        admin.json("POST", "/admin/accounts", json!({ "name": "a@b.example" }), 400).await?;

        let video = format!("/api/v1/transcript?video_id={VIDEO}");
        let bought = admin.server.get_as(&key, &video).await?;
        assert_eq!((bought.status.as_u16(), bought.header("x-credits-remaining")), (200, "699"));
        let me = admin.server.get_as(other.trim(), "/api/v1/me").await?.json();
        assert_eq!((&me["email"], &me["credits_remaining"]), (&json!("shop"), &json!(205)));

        let all = admin.get("/admin/accounts").await?;
        assert_eq!(all["items"], storage.json(&["accounts", "list", "--json"])?, "both interfaces agree");
        let path = format!("/admin/accounts/{id}");
        assert_eq!(admin.get(&path).await?, all["items"][0]);
        assert_eq!(storage.json(&["accounts", "show", "Example & Söhne", "--json"])?, all["items"][0]);
        let named = admin.get("/admin/accounts/Example%20%26%20S%C3%B6hne").await?;
        assert_eq!(named, all["items"][0], "an account is found by its name");

        let grant = json!({ "credits": 10, "id": "ticket-1" });
        for _ in 0..2 {
            let granted = admin.json("POST", &format!("{path}/grants"), grant.clone(), 200).await?;
            assert_eq!(granted["credits_remaining"], 709, "a grant with an id is applied once");
        }
        let conflict = json!({ "credits": 11, "id": "ticket-1" });
        admin.json("POST", &format!("{path}/grants"), conflict, 409).await?;
        admin.json("POST", &format!("{path}/grants"), json!({ "credits": 0 }), 400).await?;
        admin.json("POST", &format!("{path}/grants"), json!({ "credits": 1, "id": "" }), 400).await?;
        revoke_grant(&storage, &admin, &id).await?;
        let statement = admin.get(&format!("{path}/statement")).await?;
        let last = statement["items"].as_array().and_then(|lines| lines.last()).context("no line")?;
        assert_eq!((&last["step"], &last["credits"]), (&json!("revoked"), &json!(10)));
        assert_eq!(statement["items"], storage.json(&["accounts", "statement", &id, "--json"])?);
        assert_eq!(statement["items"][0]["memo"], "contract 17");
        let export = admin.get(&format!("{path}/export")).await?;
        assert_eq!(export, storage.json(&["accounts", "export", &id])?);
        let sent = admin.send("GET", &format!("{path}/export"), Value::Null).await?;
        assert_eq!(sent.header("content-length"), "", "an export is sent in parts");
        assert_eq!(sent.header("content-type"), "application/json; charset=utf-8");

        let blocked = admin.json("PATCH", &path, json!({ "blocked": true }), 200).await?;
        assert_eq!(blocked["blocked"], true);
        assert_eq!(admin.server.get_as(&key, "/api/v1/me").await?.status, 401);
        storage.stdout(&["accounts", "unblock", &id])?;
        assert_eq!(admin.server.get_as(&key, "/api/v1/me").await?.status, 200);

        let replaced = admin.json("POST", &format!("{path}/keys"), Value::Null, 201).await?;
        assert_eq!(admin.server.get_as(&key, "/api/v1/me").await?.status, 401, "the old key still works");
        let new = text(&replaced["api_key"])?.to_owned();
        assert_eq!(admin.server.get_as(&new, "/api/v1/me").await?.status, 200);
        let third = storage.stdout(&["accounts", "new-key", "Example & Söhne"])?.trim().to_owned();
        assert_eq!(admin.server.get_as(&new, "/api/v1/me").await?.status, 401);
        assert_eq!(admin.server.get_as(&third, "/api/v1/me").await?.status, 200);

        let deleted = admin.json("DELETE", &path, Value::Null, 200).await?;
        assert_eq!(deleted["notes"][0], format!("{id}: deleted"));
        for (method, below) in [("GET", ""), ("DELETE", ""), ("GET", "/export"), ("POST", "/keys")] {
            admin.json(method, &format!("{path}{below}"), Value::Null, 404).await?;
        }
        storage.stdout(&["accounts", "delete", "shop", "--yes"])?;
        assert_eq!(admin.get("/admin/accounts").await?["items"], json!([]));

        check_account_entries(&storage, &id)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_withdrawal_audit_and_log_over_http_and_command() -> Result<()> {
    for storage in TestStorage::all()? {
        storage.stdout(&["import", EXAMPLE, "--video", VIDEO, "--lang", "en"])?;
        let admin = AdminServer::start(&storage).await?;
        let lookup = format!("/api/transcript?v={VIDEO}");
        assert_eq!(admin.server.get(&lookup).await?.json()["available"], true);
        let done = admin.json("POST", "/admin/withdrawals", json!({ "link": VIDEO }), 200).await?;
        let video = format!("video_site/{VIDEO}");
        assert_eq!(done, json!({ "video": video, "withdrawn": true, "was_withdrawn": false }));
        assert_eq!(admin.server.get(&lookup).await?.json()["failureReason"], "no_captions");
        storage.stdout(&["archive", "withdraw", VIDEO, "--undo"])?;
        assert_eq!(admin.server.get(&lookup).await?.json()["available"], true);
        let wrong = json!({ "link": "https://example.org/nothing" });
        admin.json("POST", "/admin/withdrawals", wrong, 400).await?;

        let report = admin.json("POST", "/admin/ledger-audits", Value::Null, 200).await?;
        assert_eq!(report["differences"], json!([]));
        assert_eq!(storage.json(&["ledger", "audit", "--json"])?["differences"], json!([]));

        storage.stdout(&["archive", "delete", VIDEO, "--yes"])?;
        assert_eq!(admin.server.get(&lookup).await?.json()["available"], false);

        let user = system_user()?;
        let expected = [
            [user.as_str(), "admin-tokens.create", "ann", "done"],
            ["ann", "archive.withdraw", &video, "done"],
            [&user, "archive.restore", &video, "done"],
            ["ann", "ledger.audit", "-", "done"],
            [&user, "ledger.audit", "-", "done"],
            [&user, "archive.delete", &video, "done"],
        ];
        assert_eq!(storage.audit_log()?, expected);
        let first = admin.get("/admin/audit-log?limit=2").await?;
        let newest = &first["items"][0];
        assert_eq!((&newest["operator"], &newest["interface"]), (&json!(user), &json!("command")));
        assert!(newest["at"].is_string() && newest["endedAt"].is_string(), "{newest}");
        let next = text(&first["next"])?;
        let second = admin.get(&format!("/admin/audit-log?limit=4&after={next}")).await?;
        assert_eq!(second["items"][1]["operation"], "archive.restore");
        assert_eq!(second["items"][2]["interface"], "api");
        assert_eq!(second["next"], Value::Null);
        let table = storage.stdout(&["audit-log", "--count", "2"])?;
        assert_eq!(table.lines().count(), 3, "{table}");

        let document = admin.get("/admin/openapi.json").await?;
        let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/admin-openapi.json");
        assert_eq!(document, serde_json::from_str::<Value>(&std::fs::read_to_string(stored)?)?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_withdrawal_does_not_depend_on_audit_log() -> Result<()> {
    let storage = TestStorage::Files(tempfile::TempDir::new()?);
    storage.stdout(&["import", EXAMPLE, "--video", VIDEO, "--lang", "en"])?;
    let admin = AdminServer::start(&storage).await?;
    sqlite(&storage.data().path().join("verbatim.db"), "DROP TABLE audit_log")?;
    admin.json("POST", "/admin/keys", json!({}), 500).await?;
    let done = admin.json("POST", "/admin/withdrawals", json!({ "link": VIDEO }), 200).await?;
    assert_eq!((&done["withdrawn"], &done["was_withdrawn"]), (&json!(true), &json!(false)));
    let log = std::fs::read_to_string(storage.data().path().join("log"))?;
    assert!(log.contains("operation not recorded") && log.contains(VIDEO), "{log}");
    Ok(())
}

/// An account whose credits cannot be granted exists, with a key that is printed once.
#[tokio::test(flavor = "multi_thread")]
async fn admin_account_without_its_credits_is_reported() -> Result<()> {
    for storage in TestStorage::all()? {
        let admin = AdminServer::start(&storage).await?;
        storage.sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON ledger_entries BEGIN SELECT RAISE(ABORT, 'full'); END",
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'full'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse()",
        )?;
        let create = ["accounts", "create", "shop", "--credits", "50", "--memo", "contract 17"];
        let (key, error) = storage.command(&create, 1)?;
        assert!(key.starts_with("vba_") && error.contains("not granted"), "{key} {error}");
        let fields = json!({ "name": "other", "credits": 50 });
        let made = admin.json("POST", "/admin/accounts", fields, 201).await?;
        assert!(text(&made["api_key"])?.starts_with("vba_") && made["ungranted"].is_string(), "{made}");
        assert_eq!(made["credits_remaining"], 200);

        storage.sql("DROP TRIGGER refuse", "DROP TRIGGER refuse ON ledger_entries")?;
        let remedy = error.split('`').nth(1).context("no command")?;
        let remedy = remedy.strip_suffix(" --memo 'contract 17'").context("no memo")?;
        let arguments: Vec<&str> = remedy.split(' ').skip(1).chain(["--memo", "contract 17"]).collect();
        for note in ["", "already granted; "] {
            let granted = storage.stdout(&arguments)?;
            let expect = format!("shop: {note}250 credits left (grant start-account-");
            assert!(granted.starts_with(&expect), "{remedy}: {granted}");
        }
        let fields = json!({ "name": "third", "credits": 50 });
        let made = admin.json("POST", "/admin/accounts", fields, 201).await?;
        assert_eq!((&made["credits_remaining"], &made["ungranted"]), (&json!(250), &Value::Null));
    }
    Ok(())
}

/// An operation that cannot be recorded is not done; a takedown by the command is, with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn admin_operation_is_not_done_without_audit_log() -> Result<()> {
    let storage = TestStorage::Files(tempfile::TempDir::new()?);
    storage.stdout(&["import", EXAMPLE, "--video", VIDEO, "--lang", "en"])?;
    storage.stdout(&["archive", "withdraw", VIDEO])?;
    let file = storage.data().path().join("verbatim.db");
    assert!(!file.exists(), "a withdrawal without a server creates no ledger");
    storage.stdout(&["archive", "withdraw", VIDEO, "--undo"])?;
    storage.stdout(&["keys", "create"])?;
    sqlite(&file, "DROP TABLE audit_log")?;
    let (_, stderr) = storage.command(&["keys", "create"], 1)?;
    assert!(stderr.contains("rejected a statement"), "{stderr}");
    let keys = sqlite(&file, "SELECT count(*) FROM keys")?;
    assert_eq!(keys, "1\n", "a key was created without an entry");

    for (arguments, end) in [
        (&["--undo"][..], ": not withdrawn\n"),
        (&[][..], ": withdrawn\n"),
        (&["--undo"][..], ": restored\n"),
    ] {
        let arguments = [&["archive", "withdraw", VIDEO], arguments].concat();
        let (stdout, stderr) = storage.command(&arguments, 0)?;
        assert!(stdout.ends_with(end) && stderr.contains("not in the audit log"), "{stdout} {stderr}");
    }

    std::fs::write(&file, "no database")?;
    let (stdout, stderr) = storage.command(&["archive", "withdraw", VIDEO], 0)?;
    assert!(
        stdout.ends_with(": withdrawn\n") && stderr.contains("not in the audit log"),
        "{stdout} {stderr}"
    );
    Ok(())
}
