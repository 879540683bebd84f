//! The accounts and keys of the clients.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use transcript_core::{
    Timestamp,
    directory::{
        KeyOwner, NewKeyRecord, RedeemOutcome, RedeemRequest, VerificationToken,
        api_key::{ApiKey, ApiKind},
    },
    ids::{AccountId, GrantId, KeyId, WalletId},
    ledger::GrantRequest,
};

use super::store::{CrashStore, OpenStore};
use crate::simulation::seeded_rng::SeededRng;

/// Monthly credits of an account.
pub(super) const MONTHLY: u64 = 60;
/// Purchased credits of every second account; the others run out of credits.
const BOUGHT: u64 = 1_000_000;

/// The keys and wallets of one client.
#[derive(Clone, Debug)]
pub(super) struct CrashAccount {
    pub(super) index: usize,
    /// A key of the lookup API.
    pub(super) lookup_key: String,
    pub(super) lookup_wallet: WalletId,
    /// A key of the v1 API.
    pub(super) account_key: String,
    pub(super) account_wallet: WalletId,
    /// All credits of the account, monthly and purchased.
    pub(super) credits: u64,
}

/// The accounts of all clients.
#[derive(Debug)]
pub(super) struct CrashAccounts {
    pub(super) clients: Vec<CrashAccount>,
    /// A key of the lookup API whose charges no check counts.
    pub(super) uncounted_key: String,
}

impl CrashAccounts {
    /// Creates them before any server runs.
    pub(super) async fn create(store: &CrashStore, count: usize) -> Result<Self> {
        let mut lookup_keys = store.lookup_keys(count + 1)?;
        let librarian = lookup_keys.pop().context("no key was made")?;
        let open = store.open().await?;
        let mut clients = Vec::new();
        for (index, lookup_key) in lookup_keys.into_iter().enumerate() {
            clients.push(CrashAccount::create(&open, index, lookup_key).await?);
        }
        open.close().await;
        Ok(Self { clients, uncounted_key: librarian })
    }
}

impl CrashAccount {
    async fn create(open: &OpenStore, index: usize, lookup_key: String) -> Result<Self> {
        let digest = ApiKey::parse(&lookup_key).context("no key")?.digest();
        let Some(KeyOwner::Lookup(record)) = open.directory.key_owner(&digest).await? else {
            bail!("not a key")
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now = Timestamp::from_millis(i64::try_from(since.as_millis())?);
        let name = format!("client-{index}");
        let key = ApiKey::generate(ApiKind::V1, &SeededRng::new(since.subsec_nanos().into(), index as u64))?;
        let token = Sha256::digest(&name).to_vec();
        let (email, expires_at) = (format!("{name}@example.org"), now.plus(Duration::from_secs(60)));
        open.directory.put_token(VerificationToken { digest: token.clone(), email, expires_at, now }).await?;
        let new = NewKeyRecord { id: KeyId::new(&name), digest: key.digest(), hint: key.hint(), now };
        let redeem = RedeemRequest {
            digest: token,
            confirmed: false,
            new_account: AccountId::new(&name),
            new_wallet: WalletId::new(format!("account-{name}")),
            key: new,
        };
        let RedeemOutcome::Issued { account, .. } = open.directory.redeem(redeem).await? else {
            bail!("no account was made")
        };
        let bought = if index.is_multiple_of(2) { BOUGHT } else { 0 };
        if bought > 0 {
            let (id, wallet) = (GrantId::new(&name), account.wallet.clone());
            let _ = open
                .ledger
                .grant(GrantRequest { id, wallet, amount: bought, now, memo: "test".to_owned() })
                .await?;
        }
        Ok(Self {
            index,
            lookup_key,
            lookup_wallet: record.wallet,
            account_key: key.reveal().to_owned(),
            account_wallet: account.wallet,
            credits: MONTHLY + bought,
        })
    }
}
