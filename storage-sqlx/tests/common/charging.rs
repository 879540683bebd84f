//! Fixtures for charges to accounts.

use transcript_core::{
    Result,
    accounts::{ChargeOutcome, ChargeRequest},
    directory::{Account, Directory, NewKeyRecord, RedeemOutcome, RedeemRequest, VerificationToken},
    ids::{AccountId, KeyId, WalletId},
    ledger::{HoldOutcome, Ledger},
    limits::LimitRequest,
};

use super::{grant, request, timestamp};

fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0)).take(32).collect()
}

/// Creates an account with ten credits; key, wallet and account have the same name.
pub(crate) async fn account(store: &(impl Directory + Ledger), name: &str) -> Account {
    let (token, now) = (digest(&format!("token {name}")), timestamp(0));
    let email = format!("{name}@example.org");
    store
        .put_token(VerificationToken { digest: token.clone(), email, expires_at: timestamp(1_000), now })
        .await
        .unwrap();
    let key = NewKeyRecord { id: KeyId::new(name), digest: digest(name), hint: String::new(), now };
    let (new_account, new_wallet) = (AccountId::new(name), WalletId::new(name));
    let redeem = RedeemRequest { digest: token, confirmed: false, new_account, new_wallet, key };
    let RedeemOutcome::Issued { account, .. } = store.redeem(redeem).await.unwrap() else {
        panic!("a new token must create an account")
    };
    grant(store, &format!("gift for {name}"), name, 10).await;
    account
}

/// A charge of one credit, with a limit of five in a second.
pub(crate) fn charge_request(account: &Account, id: &str) -> ChargeRequest {
    let name = account.id.as_str();
    ChargeRequest {
        key_digest: digest(name),
        account: account.id.clone(),
        version: account.version,
        limit_request: LimitRequest { bucket: format!("api/{name}"), max: 5, window_ms: 1_000, cost: 1 },
        spend: request(id.to_owned(), account.wallet.as_str(), 1),
    }
}

/// Whether this call charged.
pub(crate) fn charged(outcome: &Result<ChargeOutcome>) -> bool {
    matches!(outcome, Ok(ChargeOutcome::Accepted { spent: HoldOutcome::Held { .. }, .. }))
}
