//! Who asks: clients with a key of either surface.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use transcript_core::{
    Timestamp,
    directory::{
        NewKey, Owner, Redeem, Redeemed, Token,
        key::{Key, Surface},
    },
    ids::{AccountId, GrantId, KeyId, WalletId},
    ledger::Grant,
};

use super::store::{Open, Store};
use crate::simulation::dice::Dice;

/// What an account has each month.
pub(super) const MONTHLY: u64 = 60;
/// What every second account has bought; the others run dry.
const BOUGHT: u64 = 1_000_000;

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) place: usize,
    /// A key of Surface A.
    pub(super) lookup_key: String,
    pub(super) lookup_wallet: WalletId,
    /// A key of Surface B.
    pub(super) account_key: String,
    pub(super) account_wallet: WalletId,
    /// The credits that the account was given in all.
    pub(super) credits: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct People {
    pub(super) clients: Vec<Person>,
    /// A key of Surface A whose charges nobody looks at.
    pub(super) librarian: String,
}

impl People {
    /// Makes them, before any server runs.
    pub(super) async fn made(store: &Store, count: usize) -> Result<Self> {
        let mut lookup_keys = store.lookup_keys(count + 1)?;
        let librarian = lookup_keys.pop().context("no key was made")?;
        let open = store.open().await?;
        let mut clients = Vec::new();
        for (place, lookup_key) in lookup_keys.into_iter().enumerate() {
            clients.push(Person::made(&open, place, lookup_key).await?);
        }
        open.close().await;
        Ok(Self { clients, librarian })
    }
}

impl Person {
    async fn made(open: &Open, place: usize, lookup_key: String) -> Result<Self> {
        let digest = Key::parse(&lookup_key).context("no key")?.digest();
        let Some(Owner::Lookup(record)) = open.directory.owner(&digest).await? else { bail!("not a key") };
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now = Timestamp::from_millis(i64::try_from(since.as_millis())?);
        let name = format!("client-{place}");
        let key = Key::generate(Surface::Account, &Dice::new(since.subsec_nanos().into(), place as u64))?;
        let token = Sha256::digest(&name).to_vec();
        let (email, expires_at) = (format!("{name}@example.org"), now.plus(Duration::from_secs(60)));
        open.directory.put_token(Token { digest: token.clone(), email, expires_at, now }).await?;
        let new = NewKey { id: KeyId::new(&name), digest: key.digest(), hint: key.hint(), now };
        let redeem = Redeem {
            digest: token,
            confirmed: false,
            new_account: AccountId::new(&name),
            new_wallet: WalletId::new(format!("account-{name}")),
            key: new,
        };
        let Redeemed::Issued { account, .. } = open.directory.redeem(redeem).await? else {
            bail!("no account was made")
        };
        let bought = if place.is_multiple_of(2) { BOUGHT } else { 0 };
        if bought > 0 {
            let (id, wallet) = (GrantId::new(&name), account.wallet.clone());
            open.ledger.grant(Grant { id, wallet, amount: bought, now, memo: "test".to_owned() }).await?;
        }
        Ok(Self {
            place,
            lookup_key,
            lookup_wallet: record.wallet,
            account_key: key.reveal().to_owned(),
            account_wallet: account.wallet,
            credits: MONTHLY + bought,
        })
    }
}
