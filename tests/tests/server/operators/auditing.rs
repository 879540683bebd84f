//! The audit of a consistent and of a manipulated ledger.

use std::{path::Path, time::Duration};

use anyhow::Result;
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{
        harness::{self, ServerFixture, create_keys},
        platform::{serve_platform, start_platform},
    },
    VIDEO, accounts, json_of, run_expecting, stdout_of, text,
};

/// Runs a statement on the ledger file, without the checks of the program.
fn sqlite(data: &Path, statement: &str) -> Result<()> {
    harness::sqlite(&data.join("verbatim.db"), statement).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_finds_wrong_balances() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let server = serve_platform(&data, &proxy, &[])?;
    let key = create_keys(&data, 1)?.remove(0);
    let fetched = server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?;
    assert_eq!(fetched.json()["available"], true);

    // The key and the service: a hold and a settle each.
    let sound = stdout_of(data.path(), &["ledger", "audit"])?;
    for line in ["wallets checked: 2", "entries added up: 4", "open holds: 0", "spent: 2", "differences: 0"] {
        assert!(sound.contains(&format!("{line}\n")), "{line}: {sound}");
    }
    let sound = json_of(data.path(), &["ledger", "audit", "--json"])?;
    assert_eq!((&sound["walletsChecked"], &sound["differences"]), (&json!(2), &json!([])));

    sqlite(data.path(), "UPDATE ledger_pools SET spent = spent + 7 WHERE wallet NOT LIKE 'service%';")?;
    let odd = text(&run_expecting(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("differences: 1\n"), "{odd}");
    assert!(odd.contains("is spent 8, held 0") && odd.contains("add up to spent 1, held 0"), "{odd}");
    let odd = run_expecting(data.path(), &["ledger", "audit", "--json"], "", 1)?;
    let odd: serde_json::Value = serde_json::from_slice(&odd.stdout)?;
    assert_eq!(odd["differences"][0]["stored"]["spent"], 8);
    assert_eq!(odd["differences"][0]["recomputed"]["spent"], 1);

    // A pool without entries, and entries without a pool.
    sqlite(
        data.path(),
        "UPDATE ledger_pools SET spent = spent - 7 WHERE wallet NOT LIKE 'service%';
         UPDATE ledger_pools SET bucket = 'day/1999-01-01' WHERE wallet LIKE 'service%';",
    )?;
    let odd = text(&run_expecting(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("differences: 2\n") && odd.contains("day/1999-01-01"), "{odd}");

    // A wallet without any pool, and a wallet with nothing but an open hold.
    sqlite(
        data.path(),
        "DELETE FROM ledger_pools WHERE wallet LIKE 'service%';
         INSERT INTO ledger_open VALUES ('orphan-hold', 'orphan-wallet', 0);",
    )?;
    let odd = text(&run_expecting(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    for line in
        ["wallets checked: 3\n", "differences: 2\n", "entries add up to spent 1", "orphan-wallet: a hold"]
    {
        assert!(odd.contains(line), "{line}: {odd}");
    }
    Ok(())
}

/// A charge is one entry; older charges are two entries, which stay valid.
#[tokio::test(flavor = "multi_thread")]
async fn audit_finds_manipulated_charge() -> Result<()> {
    let (data, ..) = accounts::start_with_accounts().await?;
    sqlite(
        data.path(),
        "DROP TRIGGER ledger_entries_never_change;
         INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted) VALUES ('older', 'month/x', 9, 2, 0, 0);
         INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo) VALUES
            (0, 'older', 'month/x', 9, 'held', 2, 0, 'h', ''), (0, 'older', 'month/x', 9, 'spent', 2, 0, 'h', '');",
    )?;
    let sound = stdout_of(data.path(), &["ledger", "audit"])?;
    for line in ["wallets checked: 2", "entries added up: 3", "open holds: 0", "spent: 3", "differences: 0"] {
        assert!(sound.contains(&format!("{line}\n")), "{line}: {sound}");
    }
    let (charged, held, spent) =
        ("kind = 'charged'", "cause = 'h' AND kind = 'held'", "cause = 'h' AND kind = 'spent'");
    let impossible = "overdraws a pool";
    for (which, damage, says) in [
        (charged, "amount = 7", "is spent 1, held 0, granted 0; its entries add up to spent 7, held 0"),
        (charged, "amount = 0", "is spent 1, held 0, granted 0; its entries add up to spent 0, held 0"),
        (charged, "kind = 'held'", "is spent 1, held 0, granted 0; its entries add up to spent 0, held 1"),
        (charged, "kind = 'spent'", impossible),
        (charged, "kind = 'returned'", impossible),
        (charged, "bucket = ''", impossible),
        (
            charged,
            "bucket = 'month/y'",
            "allowance month/y: the balance is spent 0, held 0, granted 0; its entries add up to spent 1",
        ),
        (charged, "wallet = 'other'", "wallet other, allowance month/"),
        (held, "kind = 'charged'", impossible),
        (held, "amount = 3", "is spent 2, held 0, granted 0; its entries add up to spent 2, held 1"),
        (spent, "kind = 'charged'", "is spent 2, held 0, granted 0; its entries add up to spent 2, held 2"),
        (spent, "amount = 1", "is spent 2, held 0, granted 0; its entries add up to spent 1, held 1"),
    ] {
        let row = format!("SELECT seq FROM ledger_entries WHERE {which}");
        let copy_row = format!("CREATE TABLE kept AS SELECT * FROM ledger_entries WHERE seq = ({row})");
        sqlite(
            data.path(),
            &format!("{copy_row}; UPDATE ledger_entries SET {damage} WHERE seq = (SELECT seq FROM kept)"),
        )?;
        let odd = text(&run_expecting(data.path(), &["ledger", "audit"], "", 1)?.stdout);
        assert!(odd.contains(says), "{which}, {damage}: {odd}");
        sqlite(
            data.path(),
            "UPDATE ledger_entries SET (wallet, bucket, kind, amount) =
                (SELECT wallet, bucket, kind, amount FROM kept) WHERE seq = (SELECT seq FROM kept); DROP TABLE kept",
        )?;
        assert!(
            stdout_of(data.path(), &["ledger", "audit"])?.contains("differences: 0\n"),
            "{which}, {damage}"
        );
    }
    // A duplicate of the charge.
    sqlite(
        data.path(),
        "INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
            SELECT at, wallet, bucket, cap, kind, amount, shortfall, cause, memo FROM ledger_entries WHERE kind = 'charged'",
    )?;
    let odd = text(&run_expecting(data.path(), &["ledger", "audit"], "", 1)?.stdout);
    assert!(odd.contains("is spent 1, held 0, granted 0; its entries add up to spent 2, held 0"), "{odd}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_of_busy_ledger_finds_no_differences() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_UPSTREAM__PROXY", "http://127.0.0.1:1")])?;
    let keys = create_keys(&data, 4)?;
    let busy = async {
        for round in 0..12 {
            for key in &keys {
                // No fetch succeeds: each call holds, then settles or releases.
                server.get_as(key, &format!("/api/transcript?v=busy-{round:02}-000")).await?;
            }
        }
        anyhow::Ok(())
    };
    let folder = data.path().to_owned();
    let audits = tokio::task::spawn_blocking(move || {
        for _ in 0..5 {
            stdout_of(&folder, &["ledger", "audit"])?;
        }
        anyhow::Ok(())
    });
    let (busy, audits) = tokio::join!(busy, audits);
    busy?;
    audits??;
    assert!(!stdout_of(data.path(), &["ledger", "audit"])?.contains("entries added up: 0\n"));
    Ok(())
}

/// A mistyped data folder is an error, not an empty store without differences.
#[test]
fn commands_on_missing_folder_fail_and_create_nothing() -> Result<()> {
    let data = TempDir::new()?;
    let none = data.path().join("typo");
    for arguments in [
        &["ledger", "audit"] as &[&str],
        &["keys", "list"],
        &["archive", "stats"],
        &["archive", "show", VIDEO],
        &["archive", "export", "--all"],
    ] {
        let output = run_expecting(&none, arguments, "", 1)?;
        assert!(text(&output.stderr).contains("nothing is stored there yet"), "{arguments:?}: {output:?}");
    }
    let vtt = data.path().join("a.vtt");
    std::fs::write(&vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\nhi\n")?;
    let file = vtt.display().to_string();
    let planned = stdout_of(&none, &["import", &file, "--video", VIDEO, "--lang", "en", "--dry-run"])?;
    assert!(planned.contains("would be"), "{planned}");
    assert!(!none.exists(), "the folder was created");
    Ok(())
}
