//! The audit of the ledger, with a ledger that is sound and one that is not.

use std::{path::Path, process::Command, time::Duration};

use anyhow::Result;
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{
        harness::{Server, borrowed, keys, run},
        platform::{platform, settings},
    },
    VIDEO, accounts, ends, text, told, told_json,
};

/// Runs a statement on the ledger's file, past everything that protects it.
fn sqlite(data: &Path, statement: &str) -> Result<()> {
    let mut command = Command::new("sqlite3");
    command.args(["-cmd", ".timeout 5000"]).arg(data.join("verbatim.db")).arg(statement);
    let done = run(command, b"")?;
    anyhow::ensure!(done.status.success(), "{}", text(&done.stderr));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_what_does_not_add_up() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let settings = settings(&proxy);
    let settings = borrowed(&settings);
    let server = Server::start(&data, &settings)?;
    let key = keys(&data, 1)?.remove(0);
    let fetched = server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?;
    assert_eq!(fetched.json()["available"], true);

    // The key and the service, each with a hold and its spending.
    let sound = told(data.path(), &["ledger", "audit"])?;
    for line in ["wallets checked: 2", "entries added up: 4", "open holds: 0", "spent: 2", "differences: 0"] {
        assert!(sound.contains(&format!("{line}\n")), "{line}: {sound}");
    }
    let sound = told_json(data.path(), &["ledger", "audit", "--json"])?;
    assert_eq!((&sound["walletsChecked"], &sound["differences"]), (&json!(2), &json!([])));

    sqlite(data.path(), "UPDATE ledger_pools SET spent = spent + 7 WHERE wallet NOT LIKE 'service%';")?;
    let odd = text(&ends(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("differences: 1\n"), "{odd}");
    assert!(odd.contains("says spent 8, held 0") && odd.contains("add up to spent 1, held 0"), "{odd}");
    let odd = ends(data.path(), &["ledger", "audit", "--json"], "", 1)?;
    let odd: serde_json::Value = serde_json::from_slice(&odd.stdout)?;
    assert_eq!(odd["differences"][0]["stored"]["spent"], 8);
    assert_eq!(odd["differences"][0]["recomputed"]["spent"], 1);

    // A pool that no entry knows of, and entries whose pool is gone.
    sqlite(
        data.path(),
        "UPDATE ledger_pools SET spent = spent - 7 WHERE wallet NOT LIKE 'service%';
         UPDATE ledger_pools SET bucket = 'day/1999-01-01' WHERE wallet LIKE 'service%';",
    )?;
    let odd = text(&ends(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("differences: 2\n") && odd.contains("day/1999-01-01"), "{odd}");

    // A wallet whose pools are all gone, and one of which there is nothing but an open hold.
    sqlite(
        data.path(),
        "DELETE FROM ledger_pools WHERE wallet LIKE 'service%';
         INSERT INTO ledger_open VALUES ('hold-of-nobody', 'wallet-of-nobody', 0);",
    )?;
    let odd = text(&ends(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    for line in
        ["wallets checked: 3\n", "differences: 2\n", "entries add up to spent 1", "wallet-of-nobody: a hold"]
    {
        assert!(odd.contains(line), "{line}: {odd}");
    }
    Ok(())
}

/// A charge is one entry; older ones are two, which are read as they were.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_what_was_done_to_a_charge() -> Result<()> {
    let (data, ..) = accounts::served().await?;
    sqlite(
        data.path(),
        "DROP TRIGGER ledger_entries_never_change;
         INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted) VALUES ('older', 'month/x', 9, 2, 0, 0);
         INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo) VALUES
            (0, 'older', 'month/x', 9, 'held', 2, 0, 'h', ''), (0, 'older', 'month/x', 9, 'spent', 2, 0, 'h', '');",
    )?;
    let sound = told(data.path(), &["ledger", "audit"])?;
    for line in ["wallets checked: 2", "entries added up: 3", "open holds: 0", "spent: 3", "differences: 0"] {
        assert!(sound.contains(&format!("{line}\n")), "{line}: {sound}");
    }
    let (charged, held, spent) =
        ("kind = 'charged'", "cause = 'h' AND kind = 'held'", "cause = 'h' AND kind = 'spent'");
    let impossible = "takes more out of a pool than there is";
    for (which, damage, says) in [
        (charged, "amount = 7", "says spent 1, held 0, granted 0; its entries add up to spent 7, held 0"),
        (charged, "amount = 0", "says spent 1, held 0, granted 0; its entries add up to spent 0, held 0"),
        (charged, "kind = 'held'", "says spent 1, held 0, granted 0; its entries add up to spent 0, held 1"),
        (charged, "kind = 'spent'", impossible),
        (charged, "kind = 'returned'", impossible),
        (charged, "bucket = ''", impossible),
        (
            charged,
            "bucket = 'month/y'",
            "allowance month/y: the balance says spent 0, held 0, granted 0; its entries add up to spent 1",
        ),
        (charged, "wallet = 'nobody'", "wallet nobody, allowance month/"),
        (held, "kind = 'charged'", impossible),
        (held, "amount = 3", "says spent 2, held 0, granted 0; its entries add up to spent 2, held 1"),
        (spent, "kind = 'charged'", "says spent 2, held 0, granted 0; its entries add up to spent 2, held 2"),
        (spent, "amount = 1", "says spent 2, held 0, granted 0; its entries add up to spent 1, held 1"),
    ] {
        let row = format!("SELECT seq FROM ledger_entries WHERE {which}");
        let keep = format!("CREATE TABLE kept AS SELECT * FROM ledger_entries WHERE seq = ({row})");
        sqlite(
            data.path(),
            &format!("{keep}; UPDATE ledger_entries SET {damage} WHERE seq = (SELECT seq FROM kept)"),
        )?;
        let odd = text(&ends(data.path(), &["ledger", "audit"], "", 1)?.stdout);
        assert!(odd.contains(says), "{which}, {damage}: {odd}");
        sqlite(
            data.path(),
            "UPDATE ledger_entries SET (wallet, bucket, kind, amount) =
                (SELECT wallet, bucket, kind, amount FROM kept) WHERE seq = (SELECT seq FROM kept); DROP TABLE kept",
        )?;
        assert!(told(data.path(), &["ledger", "audit"])?.contains("differences: 0\n"), "{which}, {damage}");
    }
    // The same charge once more.
    sqlite(
        data.path(),
        "INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
            SELECT at, wallet, bucket, cap, kind, amount, shortfall, cause, memo FROM ledger_entries WHERE kind = 'charged'",
    )?;
    let odd = text(&ends(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("says spent 1, held 0, granted 0; its entries add up to spent 2, held 0"), "{odd}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_a_busy_ledger_tells_no_differences() -> Result<()> {
    let data = TempDir::new()?;
    let server = Server::start(&data, &[("VERBATIM_UPSTREAM__PROXY", "http://127.0.0.1:1")])?;
    let keys = keys(&data, 4)?;
    let busy = async {
        for round in 0..12 {
            for key in &keys {
                // Nothing can be fetched: each is held, and settled or returned.
                server.get_as(key, &format!("/api/transcript?v=busy-{round:02}-000")).await?;
            }
        }
        anyhow::Ok(())
    };
    let folder = data.path().to_owned();
    let audits = tokio::task::spawn_blocking(move || {
        for _ in 0..5 {
            told(&folder, &["ledger", "audit"])?;
        }
        anyhow::Ok(())
    });
    let (busy, audits) = tokio::join!(busy, audits);
    busy?;
    audits??;
    assert!(!told(data.path(), &["ledger", "audit"])?.contains("entries added up: 0\n"));
    Ok(())
}

/// Whoever mistypes the data folder is told, instead of being assured that all is well in an empty one.
#[test]
fn what_is_asked_of_a_folder_without_anything_makes_nothing_there() -> Result<()> {
    let data = TempDir::new()?;
    let none = data.path().join("typo");
    for ask in [
        &["ledger", "audit"] as &[&str],
        &["keys", "list"],
        &["archive", "stats"],
        &["archive", "show", VIDEO],
        &["archive", "export", "--all"],
    ] {
        let ended = ends(&none, ask, "", 1)?;
        assert!(text(&ended.stderr).contains("nothing was kept there yet"), "{ask:?}: {ended:?}");
    }
    let vtt = data.path().join("a.vtt");
    std::fs::write(&vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\nhi\n")?;
    let file = vtt.display().to_string();
    let planned = told(&none, &["import", &file, "--video", VIDEO, "--lang", "en", "--dry-run"])?;
    assert!(planned.contains("would be"), "{planned}");
    assert!(!none.exists(), "nothing was made");
    Ok(())
}
