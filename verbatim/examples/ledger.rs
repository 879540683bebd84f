//! Charges for a transcript with the ledger: credits are granted, held, and settled once the work is done.
//!
//! ```sh
//! cargo run -p verbatim-transcripts --example ledger
//! ```

use std::{error::Error, time::Duration};

use verbatim::{
    Options, Verbatim,
    transcript_core::{
        ids::{GrantId, HoldId, WalletId},
        ledger::{
            GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, Leg, Pool, SettleOutcome, SettleRequest,
            Terms,
        },
    },
};

#[expect(clippy::print_stdout, reason = "its purpose is to print")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let verbatim = Verbatim::open(Options::default().without_suppliers()).await?;
    let (ledger, now) = (verbatim.ledger(), verbatim.now());
    let wallet = WalletId::new("customer-1");
    let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };

    // The id makes it happen once: a repeat after a fault grants nothing again.
    for _ in 0..2 {
        let id = GrantId::new("invoice-2026-117");
        let grant = GrantRequest { id, wallet: wallet.clone(), amount: 3, now, memo: "3 credits".to_owned() };
        assert_ne!(ledger.grant(grant).await?, GrantOutcome::Conflict);
    }

    // Each transcript costs a credit. The hold comes before the work, so no work is done without credit.
    for number in 1..=4 {
        let id = HoldId::new(format!("request-{number}"));
        let hold = HoldRequest {
            id: id.clone(),
            legs: vec![Leg { wallet: wallet.clone(), terms: terms.clone(), amount: 1 }],
            now,
            expires_at: now.plus(Duration::from_secs(60)),
            memo: "transcript".to_owned(),
        };
        let HoldOutcome::Held { .. } = ledger.hold(hold).await? else {
            println!("request {number}: no credit left");
            continue;
        };
        // Without a transcript nothing is spent, and the credit is available again.
        let found = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.transcript().is_some();
        let spent = u64::from(number == 1 || found);
        let settled = ledger.settle(SettleRequest { id, spent: vec![spent], now }).await?;
        assert!(matches!(settled, SettleOutcome::Settled { .. }));
    }

    let balance = ledger.balance(&wallet, &terms).await?;
    println!("{} credits left", balance.available());
    assert_eq!(balance.available(), 2);
    assert!(verbatim.audit().await?.disagreements.is_empty());
    verbatim.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn example_runs() {
        super::main().unwrap();
    }
}
