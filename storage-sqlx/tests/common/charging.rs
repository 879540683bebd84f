//! Accounts that are charged.

use transcript_core::{
    Result,
    accounts::{ChargeOutcome, ChargeRequest},
    directory::{Account, Directory, NewKey, Redeem, Redeemed, Token},
    ids::{AccountId, KeyId, WalletId},
    ledger::{HoldOutcome, Ledger},
    limits::Take,
};

use super::{grant, moment, request};

fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0)).take(32).collect()
}

/// An account with ten credits; key, wallet and account have one name.
pub(crate) async fn account(store: &(impl Directory + Ledger), name: &str) -> Account {
    let (token, now) = (digest(&format!("token {name}")), moment(0));
    let email = format!("{name}@example.org");
    store.put_token(Token { digest: token.clone(), email, expires_at: moment(1_000), now }).await.unwrap();
    let key = NewKey { id: KeyId::new(name), digest: digest(name), hint: String::new(), now };
    let (new_account, new_wallet) = (AccountId::new(name), WalletId::new(name));
    let redeem = Redeem { digest: token, confirmed: false, new_account, new_wallet, key };
    let Redeemed::Issued { account, .. } = store.redeem(redeem).await.unwrap() else {
        panic!("a fresh token makes an account")
    };
    grant(store, &format!("gift for {name}"), name, 10).await;
    account
}

/// A charge of one credit; five in a second are let through.
pub(crate) fn ask(account: &Account, id: &str) -> ChargeRequest {
    let name = account.id.as_str();
    ChargeRequest {
        key_digest: digest(name),
        account: account.id.clone(),
        version: account.version,
        take: Take { bucket: format!("api/{name}"), count: 5, per_ms: 1_000, cost: 1 },
        spend: request(id.to_owned(), account.wallet.as_str(), 1),
    }
}

/// Whether it was charged now.
pub(crate) fn charged(outcome: &Result<ChargeOutcome>) -> bool {
    matches!(outcome, Ok(ChargeOutcome::Counted { spent: HoldOutcome::Held { .. }, .. }))
}
