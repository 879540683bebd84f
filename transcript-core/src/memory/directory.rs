//! The directory in memory.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;

use super::{Shared, numbered, page_of};
use crate::{
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, KeySummary, LookupKey, NewKey,
        Owner, Plan, Redeem, Redeemed, Rotated, Token,
    },
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, KeyId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// A [`Directory`] in memory. A clone is the same directory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDirectory {
    register: Shared<Register>,
}

/// Keys and accounts by a number that grows: oldest first.
#[derive(Debug, Default)]
struct Register {
    keys: BTreeMap<u64, StoredKey>,
    accounts: BTreeMap<u64, Account>,
    tokens: HashMap<Vec<u8>, StoredToken>,
    last: u64,
}

#[derive(Debug)]
struct StoredKey {
    of: KeyOf,
    revoked_at: Option<Timestamp>,
}

#[derive(Debug)]
enum KeyOf {
    Lookup(LookupKey),
    Account { key: NewKey, account: AccountId },
}

#[derive(Debug)]
struct StoredToken {
    email: String,
    expires_at: Timestamp,
    state: TokenState,
}

#[derive(Debug)]
enum TokenState {
    Fresh,
    Void,
    /// By whom it was used: a repeat of the same redemption gets the same answer.
    Used {
        account: AccountId,
        key: NewKey,
        first: bool,
    },
}

impl StoredKey {
    fn key(&self) -> &NewKey {
        match &self.of {
            KeyOf::Lookup(lookup) => &lookup.key,
            KeyOf::Account { key, .. } => key,
        }
    }

    fn is_live(&self) -> bool {
        self.revoked_at.is_none()
    }

    fn is_of(&self, id: &AccountId) -> bool {
        matches!(&self.of, KeyOf::Account { account, .. } if account == id)
    }

    /// Until when it is entitled, if it is a live key of this subject that is entitled at a moment.
    fn plus_until(&self, of: &str, now: Timestamp) -> Option<Timestamp> {
        let KeyOf::Lookup(LookupKey { subject: Some(subject), entitled_until: Some(until), .. }) = &self.of
        else {
            return None;
        };
        (self.is_live() && subject == of && *until > now).then_some(*until)
    }
}

fn is_same(a: &NewKey, b: &NewKey) -> bool {
    a.id == b.id && a.digest == b.digest
}

#[cold]
fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}

impl Register {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn live(&self, is: impl Fn(&NewKey) -> bool) -> Option<&StoredKey> {
        self.keys.values().find(|stored| stored.is_live() && is(stored.key()))
    }

    fn live_mut(&mut self, is: impl Fn(&NewKey) -> bool) -> Option<&mut StoredKey> {
        self.keys.values_mut().find(|stored| stored.is_live() && is(stored.key()))
    }

    /// Stores a key whose id and digest must be new.
    fn add(&mut self, of: KeyOf) -> Result<()> {
        let stored = StoredKey { of, revoked_at: None };
        let new = stored.key();
        if self.keys.values().any(|other| other.key().id == new.id || other.key().digest == new.digest) {
            return Err(conflict("the key's id or digest is another key's"));
        }
        let number = self.number();
        self.keys.insert(number, stored);
        Ok(())
    }

    fn add_key(&mut self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        if self.keys.values().any(|stored| is_same(stored.key(), &key.key)) {
            return Ok(AddKey::Added);
        }
        if let Some(subject) = &key.subject {
            let mut plus: Vec<_> =
                self.keys.values().filter_map(|stored| stored.plus_until(subject, key.key.now)).collect();
            if plus.len() >= live_per_subject as usize {
                plus.sort_unstable_by(|a, b| b.cmp(a));
                let last = (live_per_subject as usize).checked_sub(1);
                return Ok(AddKey::SubjectFull { room_at: last.and_then(|last| plus.get(last).copied()) });
            }
        }
        self.add(KeyOf::Lookup(key))?;
        Ok(AddKey::Added)
    }

    fn entitle(&mut self, ask: &Entitle) -> bool {
        let live = self.keys.values().filter(|stored| stored.plus_until(&ask.subject, ask.now).is_some());
        let has_room = live.count() < ask.live_per_subject as usize;
        let stored = self.live_mut(|stored| stored.id == ask.key);
        let Some(StoredKey { of: KeyOf::Lookup(LookupKey { subject, entitled_until, .. }), .. }) = stored
        else {
            return false;
        };
        let is_own = subject.as_ref() == Some(&ask.subject);
        if !is_own || !(has_room || *entitled_until > Some(ask.now)) {
            return false;
        }
        *entitled_until = (*entitled_until).max(Some(ask.until));
        true
    }

    fn rotate(&mut self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        let Some(old) = self.live(|key| key.digest == old_digest) else {
            return Ok(Rotated::Stale);
        };
        let revoked_at = new.now;
        let of = match &old.of {
            KeyOf::Lookup(lookup) => KeyOf::Lookup(LookupKey { key: new, ..lookup.clone() }),
            KeyOf::Account { account, .. } => KeyOf::Account { key: new, account: account.clone() },
        };
        self.add(of)?;
        if let Some(old) = self.live_mut(|key| key.digest == old_digest) {
            old.revoked_at = Some(revoked_at);
        }
        Ok(Rotated::Rotated)
    }

    fn put_token(&mut self, token: Token) -> Result<()> {
        if let Some(stored) = self.tokens.get(&token.digest) {
            let same = stored.email == token.email;
            return same.then_some(()).ok_or_else(|| conflict("the token was sent to another address"));
        }
        let Token { digest, email, expires_at, .. } = token;
        self.tokens.insert(digest, StoredToken { email, expires_at, state: TokenState::Fresh });
        Ok(())
    }

    fn redeem(&mut self, ask: Redeem) -> Result<Redeemed> {
        let Some(token) = self.tokens.get(&ask.digest) else {
            return Ok(Redeemed::Invalid);
        };
        match &token.state {
            TokenState::Fresh if token.expires_at > ask.key.now => {}
            TokenState::Used { account, key, first } if is_same(key, &ask.key) => {
                let account = self.account(&AccountRef::Id(account.clone()));
                let lives = self.live(|key| is_same(key, &ask.key)).is_some();
                let issued = account.filter(|_| lives).cloned();
                return Ok(
                    issued.map_or(Redeemed::Invalid, |account| Redeemed::Issued { account, first: *first })
                );
            }
            _ => return Ok(Redeemed::Invalid),
        }
        let email = token.email.clone();
        let known = self.account(&AccountRef::Email(email.clone())).cloned();
        let first = known.is_none();
        if !first && !ask.confirmed {
            return Ok(Redeemed::NeedsConfirmation);
        }
        if first && self.account(&AccountRef::Id(ask.new_account.clone())).is_some() {
            return Err(conflict("the account's id is another account's"));
        }
        let account = known.unwrap_or_else(|| new_account(&ask, email.clone()));
        self.add(KeyOf::Account { key: ask.key.clone(), account: account.id.clone() })?;
        let old = self.keys.values_mut().filter(|stored| stored.is_of(&account.id) && stored.is_live());
        for key in old.filter(|stored| !is_same(stored.key(), &ask.key)) {
            key.revoked_at = Some(ask.key.now);
        }
        if first {
            let number = self.number();
            self.accounts.insert(number, account.clone());
        }
        let fresh =
            |token: &&mut StoredToken| token.email == email && matches!(token.state, TokenState::Fresh);
        for token in self.tokens.values_mut().filter(fresh) {
            token.state = TokenState::Void;
        }
        if let Some(token) = self.tokens.get_mut(&ask.digest) {
            token.state = TokenState::Used { account: account.id.clone(), key: ask.key, first };
        }
        Ok(Redeemed::Issued { account, first })
    }

    fn account(&self, who: &AccountRef) -> Option<&Account> {
        self.accounts.values().find(|account| match who {
            AccountRef::Id(id) => account.id == *id,
            AccountRef::Email(email) => account.email == *email,
            AccountRef::Customer(customer) => account.customer.as_ref() == Some(customer),
        })
    }

    fn change_account(&mut self, changed: Account) -> Result<Changed> {
        let others = self.accounts.values().filter(|account| account.id != changed.id);
        let taken =
            changed.customer.is_some() && others.into_iter().any(|other| other.customer == changed.customer);
        let Some(stored) = self.accounts.values_mut().find(|account| account.id == changed.id) else {
            return Ok(Changed::Missing);
        };
        if stored.version != changed.version {
            return Ok(Changed::Stale);
        }
        if taken {
            return Err(conflict("the customer is another account's"));
        }
        *stored = Account {
            version: changed.version + 1,
            email: stored.email.clone(),
            wallet: stored.wallet.clone(),
            ..changed
        };
        Ok(Changed::Changed(stored.clone()))
    }

    fn erase_account(&mut self, id: &AccountId, version: u64) -> Erased {
        let found = self.accounts.iter().find(|(_, account)| account.id == *id);
        let Some((number, account)) = found.map(|(number, account)| (*number, account.clone())) else {
            return Erased::Missing;
        };
        if account.version != version {
            return Erased::Stale;
        }
        self.accounts.remove(&number);
        self.tokens.retain(|_, token| token.email != account.email);
        self.keys.retain(|_, stored| !stored.is_of(id));
        Erased::Erased
    }
}

/// The account that a first redemption makes: on the free plan, its month anchored at this moment.
fn new_account(ask: &Redeem, email: String) -> Account {
    Account {
        id: ask.new_account.clone(),
        version: 1,
        email,
        wallet: ask.new_wallet.clone(),
        plan: Plan::Free,
        anchor: ask.key.now,
        paid: None,
        customer: None,
        subscription: None,
        blocked: false,
    }
}

#[async_trait]
impl Directory for MemoryDirectory {
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>> {
        let register = self.register.lock();
        let Some(stored) = register.live(|key| key.digest == key_digest) else {
            return Ok(None);
        };
        Ok(match &stored.of {
            KeyOf::Lookup(lookup) => Some(Owner::Lookup(lookup.clone())),
            KeyOf::Account { key, account } => register
                .account(&AccountRef::Id(account.clone()))
                .map(|account| Owner::Account { key: key.id.clone(), account: account.clone() }),
        })
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        self.register.lock().add_key(key, live_per_subject)
    }

    async fn entitle(&self, ask: Entitle) -> Result<bool> {
        Ok(self.register.lock().entitle(&ask))
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        self.register.lock().rotate(old_digest, new)
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        let mut register = self.register.lock();
        let live = register.live_mut(|stored| stored.id == *key);
        Ok(live.map(|stored| stored.revoked_at = Some(now)).is_some())
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let after = numbered(page.after.as_ref())?;
        let register = self.register.lock();
        let rest = register.keys.iter().filter(|(number, _)| **number > after);
        let rest = rest.filter_map(|(number, stored)| match &stored.of {
            KeyOf::Lookup(lookup) => {
                Some((*number, KeySummary { key: lookup.clone(), revoked_at: stored.revoked_at }))
            }
            KeyOf::Account { .. } => None,
        });
        Ok(without_numbers(page_of(rest, page.size(), |(number, _)| number.to_string())))
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        self.register.lock().put_token(token)
    }

    async fn redeem(&self, ask: Redeem) -> Result<Redeemed> {
        self.register.lock().redeem(ask)
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        Ok(self.register.lock().account(who).cloned())
    }

    async fn change_account(&self, account: Account) -> Result<Changed> {
        self.register.lock().change_account(account)
    }

    async fn erase_account(&self, id: &AccountId, version: u64, _now: Timestamp) -> Result<Erased> {
        Ok(self.register.lock().erase_account(id, version))
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let after = numbered(page.after.as_ref())?;
        let register = self.register.lock();
        let rest = register.accounts.iter().filter(|(number, _)| **number > after);
        let rest = rest.map(|(number, account)| (*number, account.clone()));
        Ok(without_numbers(page_of(rest, page.size(), |(number, _)| number.to_string())))
    }
}

fn without_numbers<T>(page: Page<(u64, T)>) -> Page<T> {
    Page { items: page.items.into_iter().map(|(_, item)| item).collect(), next: page.next }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::directory_conformance!(Arc::new(super::MemoryDirectory::default()));
}
