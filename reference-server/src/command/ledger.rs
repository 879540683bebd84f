//! `verbatim ledger audit`: recomputes every balance from its entries.

use transcript_core::ledger::PoolBalance;
use verbatim::{AuditFinding, AuditReport};

use super::{CommandError, arguments::JsonArgs, ignore_closed, open_existing, operations, print, print_json};
use crate::{
    config::Settings,
    operations::{audit_report_json, pool_name},
};

/// Audits the ledger and prints the result.
pub(super) async fn run(settings: &Settings, args: JsonArgs) -> Result<(), CommandError> {
    let verbatim = open_existing(settings).await?;
    let audit = operations(settings, &verbatim).audit_ledger().await;
    verbatim.close().await;
    let audit = audit?;
    ignore_closed(match args.json {
        true => print_json(&format!("{:#}\n", audit_report_json(&audit))),
        false => print(&as_text(&audit)),
    })?;
    match audit.disagreements.len() {
        0 => Ok(()),
        1 => Err(CommandError::Fault("the ledger is inconsistent: 1 difference".to_owned())),
        count => Err(CommandError::Fault(format!("the ledger is inconsistent: {count} differences"))),
    }
}

fn as_text(audit: &AuditReport) -> String {
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
            AuditFinding::Balance { wallet, difference } => format!(
                "wallet {wallet}, {}: the balance is {}; its entries add up to {}\n",
                pool_name(difference),
                side(difference.stored.as_ref()),
                side(difference.recomputed.as_ref())
            ),
            AuditFinding::Overdraw { wallet, entry } => {
                format!("wallet {wallet}: entry {entry} overdraws a pool\n")
            }
            AuditFinding::OrphanHold { wallet } => {
                format!("wallet {wallet}: a hold is open without pools and entries\n")
            }
            AuditFinding::Unstable { wallet } => {
                format!("wallet {wallet}: it changed during each read; run the audit again\n")
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
