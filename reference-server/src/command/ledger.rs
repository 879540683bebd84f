//! `verbatim ledger audit`: whether every balance is what its entries add up to.

use serde_json::{Value, json};
use transcript_core::ledger::{PoolBalance, audit::Difference};
use verbatim::{Audit, Disagreement};

use super::{Failure, archive_arguments, open_existing, print, print_json};
use crate::config::Settings;

/// Checks the ledger and tells what was found.
pub(super) async fn run(settings: &Settings, ask: archive_arguments::Audit) -> Result<(), Failure> {
    let verbatim = open_existing(settings).await?;
    let audit = verbatim.audit().await;
    verbatim.close().await;
    let audit = audit?;
    if ask.json {
        print_json(&format!("{:#}\n", as_json(&audit)))?
    } else {
        print(&as_text(&audit))?
    }
    match audit.disagreements.len() {
        0 => Ok(()),
        1 => Err(Failure::Fault("the ledger contradicts itself in one place".to_owned())),
        count => Err(Failure::Fault(format!("the ledger contradicts itself in {count} places"))),
    }
}

fn as_text(audit: &Audit) -> String {
    let figures = [
        ("wallets checked", audit.wallets),
        ("entries added up", audit.entries),
        ("open holds", audit.open_holds),
        ("spent", audit.spent),
        ("held", audit.held),
        ("granted", audit.granted),
        ("differences", audit.disagreements.len() as u64),
    ];
    let mut text: String = figures.map(|(name, figure)| format!("{name}: {figure}\n")).concat();
    for disagreement in &audit.disagreements {
        text.push_str(&match disagreement {
            Disagreement::Balance { wallet, difference } => format!(
                "wallet {wallet}, {}: the balance says {}; its entries add up to {}\n",
                pool(difference),
                side(difference.stored.as_ref()),
                side(difference.recomputed.as_ref())
            ),
            Disagreement::Entry { wallet, entry } => {
                format!("wallet {wallet}: entry {entry} takes more out of a pool than there is\n")
            }
            Disagreement::Baseless { wallet } => {
                format!("wallet {wallet}: a hold is open in it, but it has neither pools nor entries\n")
            }
            Disagreement::Restless { wallet } => {
                format!("wallet {wallet}: it changed each time that it was read; run the audit again\n")
            }
        });
    }
    text
}

fn side(balance: Option<&PoolBalance>) -> String {
    balance.map_or_else(
        || "nothing".to_owned(),
        |pool| format!("spent {}, held {}, granted {}", pool.spent, pool.held, pool.granted),
    )
}

/// The name of the pool that differs.
fn pool(difference: &Difference) -> String {
    let pool = difference.stored.as_ref().or(difference.recomputed.as_ref());
    match pool.and_then(|pool| pool.pool.bucket()) {
        Some(bucket) => format!("allowance {bucket}"),
        None => "purchased credits".to_owned(),
    }
}

fn as_json(audit: &Audit) -> Value {
    let side = |balance: Option<&PoolBalance>| {
        balance.map(|pool| json!({ "spent": pool.spent, "held": pool.held, "granted": pool.granted }))
    };
    let differences = audit.disagreements.iter().map(|disagreement| match disagreement {
        Disagreement::Balance { wallet, difference } => json!({
            "wallet": wallet.as_str(),
            "kind": "balance",
            "pool": pool(difference),
            "stored": side(difference.stored.as_ref()),
            "recomputed": side(difference.recomputed.as_ref()),
        }),
        Disagreement::Entry { wallet, entry } => {
            json!({ "wallet": wallet.as_str(), "kind": "entry", "entry": entry })
        }
        Disagreement::Baseless { wallet } => json!({ "wallet": wallet.as_str(), "kind": "baseless" }),
        Disagreement::Restless { wallet } => json!({ "wallet": wallet.as_str(), "kind": "restless" }),
    });
    json!({
        "walletsChecked": audit.wallets,
        "entries": audit.entries,
        "openHolds": audit.open_holds,
        "spent": audit.spent,
        "held": audit.held,
        "granted": audit.granted,
        "differences": differences.collect::<Vec<_>>(),
    })
}
