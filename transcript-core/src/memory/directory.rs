//! The in-memory directory.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    directory::{
        Account, AccountKey, AccountRef, AddAccountKeyOutcome, AddKeyOutcome, Directory, EraseOutcome,
        KeyAccessChange, KeyOwner, KeyRequests, KeySummary, LookupKey, NewAccountKey, NewKeyRecord, Plan,
        RedeemOutcome, RedeemRequest, RenewRequest, RequestCounts, RotateOutcome, UpdateOutcome,
        VerificationToken,
    },
    error::{Error, Result},
    ids::{AccountId, Cursor, KeyId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// An in-memory [`Directory`]. A clone is the same directory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDirectory {
    state: SharedState<DirectoryState>,
}

/// Keys and accounts by ascending number: oldest first.
#[derive(Debug, Default)]
struct DirectoryState {
    keys: BTreeMap<u64, StoredKey>,
    accounts: BTreeMap<u64, Account>,
    tokens: HashMap<Vec<u8>, StoredToken>,
    last: u64,
}

#[derive(Debug)]
struct StoredKey {
    owner: KeyRecordOwner,
    revoked_at: Option<Timestamp>,
}

#[derive(Debug)]
enum KeyRecordOwner {
    Lookup(LookupKey),
    Account { key: NewKeyRecord, account: AccountId, name: Option<String>, requests: RequestCounts },
}

impl KeyRecordOwner {
    /// A key of an account that has not been used.
    fn account(key: NewKeyRecord, account: AccountId, name: Option<String>) -> Self {
        Self::Account { key, account, name, requests: RequestCounts::default() }
    }
}

#[derive(Debug)]
struct StoredToken {
    email: String,
    expires_at: Timestamp,
    state: TokenState,
}

#[derive(Debug)]
enum TokenState {
    Unused,
    Void,
    /// The redemption; a repeat of it gets the same outcome.
    Used {
        account: AccountId,
        key: NewKeyRecord,
        first: bool,
    },
}

impl StoredKey {
    fn key(&self) -> &NewKeyRecord {
        match &self.owner {
            KeyRecordOwner::Lookup(lookup) => &lookup.key,
            KeyRecordOwner::Account { key, .. } => key,
        }
    }

    fn is_live(&self) -> bool {
        self.revoked_at.is_none()
    }

    fn belongs_to(&self, id: &AccountId) -> bool {
        matches!(&self.owner, KeyRecordOwner::Account { account, .. } if account == id)
    }

    /// The end of its entitlement, if it is a live key of this subject with an active one.
    fn plus_until(&self, owner: &str, now: Timestamp) -> Option<Timestamp> {
        let KeyRecordOwner::Lookup(LookupKey { subject: Some(subject), entitled_until: Some(until), .. }) =
            &self.owner
        else {
            return None;
        };
        (self.is_live() && subject == owner && *until > now).then_some(*until)
    }
}

fn is_same(a: &NewKeyRecord, b: &NewKeyRecord) -> bool {
    a.id == b.id && a.digest == b.digest
}

impl DirectoryState {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn find_live(&self, predicate: impl Fn(&NewKeyRecord) -> bool) -> Option<&StoredKey> {
        self.keys.values().find(|stored| stored.is_live() && predicate(stored.key()))
    }

    fn find_live_mut(&mut self, predicate: impl Fn(&NewKeyRecord) -> bool) -> Option<&mut StoredKey> {
        self.keys.values_mut().find(|stored| stored.is_live() && predicate(stored.key()))
    }

    /// Refuses a key whose ID or digest is stored.
    fn check_unused(&self, new: &NewKeyRecord) -> Result<()> {
        match self.keys.values().any(|other| other.key().id == new.id || other.key().digest == new.digest) {
            true => Err(Error::conflict("the key id or the digest belongs to another key")),
            false => Ok(()),
        }
    }

    /// Stores a key with a new ID and digest.
    fn add(&mut self, owner: KeyRecordOwner) -> Result<()> {
        let stored = StoredKey { owner, revoked_at: None };
        self.check_unused(stored.key())?;
        let next_number = self.next_number();
        self.keys.insert(next_number, stored);
        Ok(())
    }

    fn account(&self, reference: &AccountRef) -> Option<&Account> {
        self.accounts.values().find(|account| match reference {
            AccountRef::Id(id) => account.id == *id,
            AccountRef::Email(email) => account.email == *email,
            AccountRef::Customer(customer) => account.customer.as_ref() == Some(customer),
        })
    }
}

/// The account of a first redemption: on the free plan, with its month anchored at this time.
fn new_account(request: &RedeemRequest, email: String) -> Account {
    Account {
        id: request.new_account.clone(),
        version: 1,
        email,
        wallet: request.new_wallet.clone(),
        plan: Plan::Free,
        anchor: request.key.now,
        paid: None,
        customer: None,
        subscription: None,
        blocked: false,
        prepaid_until: None,
    }
}

#[async_trait]
impl Directory for MemoryDirectory {
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<KeyOwner>> {
        let state = self.state.lock();
        let Some(stored) = state.find_live(|key| key.digest == key_digest) else {
            return Ok(None);
        };
        Ok(match &stored.owner {
            KeyRecordOwner::Lookup(lookup) => Some(KeyOwner::Lookup(lookup.clone())),
            KeyRecordOwner::Account { key, account, .. } => state
                .account(&AccountRef::Id(account.clone()))
                .map(|account| KeyOwner::Account { key: key.id.clone(), account: account.clone() }),
        })
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome> {
        let mut state = self.state.lock();
        if state.keys.values().any(|stored| is_same(stored.key(), &key.key)) {
            return Ok(AddKeyOutcome::Added);
        }
        if let Some(subject) = &key.subject {
            let mut plus_keys: Vec<_> =
                state.keys.values().filter_map(|stored| stored.plus_until(subject, key.key.now)).collect();
            if plus_keys.len() >= live_per_subject as usize {
                plus_keys.sort_unstable_by(|a, b| b.cmp(a));
                let last = (live_per_subject as usize).checked_sub(1);
                return Ok(AddKeyOutcome::SubjectFull {
                    room_at: last.and_then(|last| plus_keys.get(last).copied()),
                });
            }
        }
        state.add(KeyRecordOwner::Lookup(key))?;
        Ok(AddKeyOutcome::Added)
    }

    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool> {
        let mut state = self.state.lock();
        let live =
            state.keys.values().filter(|stored| stored.plus_until(&request.subject, request.now).is_some());
        let has_room = live.count() < request.live_per_subject as usize;
        let stored = state.find_live_mut(|stored| stored.id == request.key);
        let Some(StoredKey {
            owner: KeyRecordOwner::Lookup(LookupKey { subject, entitled_until, .. }), ..
        }) = stored
        else {
            return Ok(false);
        };
        let is_own = subject.as_ref() == Some(&request.subject);
        if !is_own || !(has_room || *entitled_until > Some(request.now)) {
            return Ok(false);
        }
        *entitled_until = (*entitled_until).max(Some(request.until));
        Ok(true)
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome> {
        let mut state = self.state.lock();
        let Some(old) = state.find_live(|key| key.digest == old_digest) else {
            return Ok(RotateOutcome::Stale);
        };
        let revoked_at = new.now;
        let owner = match &old.owner {
            KeyRecordOwner::Lookup(lookup) => {
                KeyRecordOwner::Lookup(LookupKey { key: new, ..lookup.clone() })
            }
            KeyRecordOwner::Account { account, name, .. } => {
                KeyRecordOwner::account(new, account.clone(), name.clone())
            }
        };
        state.add(owner)?;
        if let Some(old) = state.find_live_mut(|key| key.digest == old_digest) {
            old.revoked_at = Some(revoked_at);
        }
        Ok(RotateOutcome::Rotated)
    }

    async fn add_account_key(&self, new: NewAccountKey, live_max: u32) -> Result<AddAccountKeyOutcome> {
        let mut state = self.state.lock();
        let NewAccountKey { key, account, name } = new;
        if state.keys.values().any(|stored| is_same(stored.key(), &key)) {
            return Ok(AddAccountKeyOutcome::Added);
        }
        state.check_unused(&key)?;
        if state.account(&AccountRef::Id(account.clone())).is_none() {
            return Ok(AddAccountKeyOutcome::Missing);
        }
        let live = state.keys.values().filter(|stored| stored.is_live() && stored.belongs_to(&account));
        if live.count() >= live_max as usize {
            return Ok(AddAccountKeyOutcome::AccountFull);
        }
        state.add(KeyRecordOwner::account(key, account, Some(name)))?;
        Ok(AddAccountKeyOutcome::Added)
    }

    async fn account_keys(&self, account: &AccountId) -> Result<Vec<AccountKey>> {
        let state = self.state.lock();
        let live = state.keys.values().filter(|stored| stored.is_live());
        let keys = live.filter_map(|stored| match &stored.owner {
            KeyRecordOwner::Account { key, account: owner, name, requests } if owner == account => {
                let (key, name) = (key.clone(), name.clone());
                Some(AccountKey { key, name, last_used_at: requests.last_at })
            }
            _ => None,
        });
        Ok(keys.collect())
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        let mut state = self.state.lock();
        let live = state.find_live_mut(|stored| stored.id == *key);
        Ok(live.map(|stored| stored.revoked_at = Some(now)).is_some())
    }

    async fn change_key_access(&self, key: &KeyId, change: KeyAccessChange) -> Result<bool> {
        let mut state = self.state.lock();
        let live = state.find_live_mut(|stored| stored.id == *key);
        let Some(StoredKey { owner: KeyRecordOwner::Lookup(key), .. }) = live else { return Ok(false) };
        key.access = change.apply(&key.access);
        Ok(true)
    }

    async fn add_key_requests(&self, requests: Vec<KeyRequests>) -> Result<Vec<KeyRequests>> {
        let mut state = self.state.lock();
        let add = |requests: KeyRequests| {
            let stored = state.keys.values_mut().find(|stored| stored.key().id == requests.key)?;
            let counts = match &mut stored.owner {
                KeyRecordOwner::Lookup(key) => &mut key.access.requests,
                KeyRecordOwner::Account { requests, .. } => requests,
            };
            *counts = counts.plus(&requests.counts);
            Some(KeyRequests { counts: counts.clone(), ..requests })
        };
        Ok(requests.into_iter().filter_map(add).collect())
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let after = Cursor::number(page.after.as_ref())?;
        let state = self.state.lock();
        let rest = state.keys.iter().filter(|(next_number, _)| **next_number > after);
        let rest = rest.filter_map(|(next_number, stored)| match &stored.owner {
            KeyRecordOwner::Lookup(lookup) => {
                Some((*next_number, KeySummary { key: lookup.clone(), revoked_at: stored.revoked_at }))
            }
            KeyRecordOwner::Account { .. } => None,
        });
        Ok(without_numbers(Page::cut(rest, &page, |(next_number, _)| next_number.to_string())))
    }

    async fn put_token(&self, token: VerificationToken) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(stored) = state.tokens.get(&token.digest) {
            let same = stored.email == token.email;
            return same
                .then_some(())
                .ok_or_else(|| Error::conflict("the token's digest is stored for another email address"));
        }
        let VerificationToken { digest, email, expires_at, .. } = token;
        state.tokens.insert(digest, StoredToken { email, expires_at, state: TokenState::Unused });
        Ok(())
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome> {
        let mut state = self.state.lock();
        let Some(token) = state.tokens.get(&request.digest) else {
            return Ok(RedeemOutcome::Invalid);
        };
        match &token.state {
            TokenState::Unused
                if token.expires_at > request.key.now
                    && token.expires_at <= VerificationToken::expiry_max(request.key.now) => {}
            TokenState::Used { account, key, first } if is_same(key, &request.key) => {
                let account = state.account(&AccountRef::Id(account.clone()));
                let is_live = state.find_live(|key| is_same(key, &request.key)).is_some();
                let issued = account.filter(|_| is_live).cloned();
                return Ok(issued.map_or(RedeemOutcome::Invalid, |account| RedeemOutcome::Issued {
                    account,
                    first: *first,
                }));
            }
            _ => return Ok(RedeemOutcome::Invalid),
        }
        let email = token.email.clone();
        let known = state.account(&AccountRef::Email(email.clone())).cloned();
        let first = known.is_none();
        if !first && !request.confirmed {
            return Ok(RedeemOutcome::NeedsConfirmation);
        }
        if first && state.account(&AccountRef::Id(request.new_account.clone())).is_some() {
            return Err(Error::conflict("the account id belongs to another account"));
        }
        let account = known.unwrap_or_else(|| new_account(&request, email.clone()));
        state.add(KeyRecordOwner::account(request.key.clone(), account.id.clone(), None))?;
        let old = state.keys.values_mut().filter(|stored| stored.belongs_to(&account.id) && stored.is_live());
        for key in old.filter(|stored| !is_same(stored.key(), &request.key)) {
            key.revoked_at = Some(request.key.now);
        }
        if first {
            let next_number = state.next_number();
            state.accounts.insert(next_number, account.clone());
        }
        let unused =
            |token: &&mut StoredToken| token.email == email && matches!(token.state, TokenState::Unused);
        for token in state.tokens.values_mut().filter(unused) {
            token.state = TokenState::Void;
        }
        if let Some(token) = state.tokens.get_mut(&request.digest) {
            token.state = TokenState::Used { account: account.id.clone(), key: request.key, first };
        }
        Ok(RedeemOutcome::Issued { account, first })
    }

    async fn account(&self, reference: &AccountRef) -> Result<Option<Account>> {
        Ok(self.state.lock().account(reference).cloned())
    }

    async fn update_account(&self, changed: Account) -> Result<UpdateOutcome> {
        let mut state = self.state.lock();
        let others = state.accounts.values().filter(|account| account.id != changed.id);
        let taken =
            changed.customer.is_some() && others.into_iter().any(|other| other.customer == changed.customer);
        let Some(stored) = state.accounts.values_mut().find(|account| account.id == changed.id) else {
            return Ok(UpdateOutcome::Missing);
        };
        if stored.version != changed.version {
            return Ok(UpdateOutcome::Stale);
        }
        if taken {
            return Err(Error::conflict("the customer id belongs to another account"));
        }
        *stored = Account {
            version: changed.version + 1,
            email: stored.email.clone(),
            wallet: stored.wallet.clone(),
            ..changed
        };
        Ok(UpdateOutcome::Changed(stored.clone()))
    }

    async fn erase_account(&self, id: &AccountId, version: u64, _now: Timestamp) -> Result<EraseOutcome> {
        let mut state = self.state.lock();
        let found = state.accounts.iter().find(|(_, account)| account.id == *id);
        let Some((next_number, account)) =
            found.map(|(next_number, account)| (*next_number, account.clone()))
        else {
            return Ok(EraseOutcome::Missing);
        };
        if account.version != version {
            return Ok(EraseOutcome::Stale);
        }
        state.accounts.remove(&next_number);
        state.tokens.retain(|_, token| token.email != account.email);
        state.keys.retain(|_, stored| !stored.belongs_to(id));
        Ok(EraseOutcome::Erased)
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let after = Cursor::number(page.after.as_ref())?;
        let state = self.state.lock();
        let rest = state.accounts.iter().filter(|(next_number, _)| **next_number > after);
        let rest = rest.map(|(next_number, account)| (*next_number, account.clone()));
        Ok(without_numbers(Page::cut(rest, &page, |(next_number, _)| next_number.to_string())))
    }
}

fn without_numbers<T>(page: Page<(u64, T)>) -> Page<T> {
    Page { items: page.items.into_iter().map(|(_, item)| item).collect(), next: page.next }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::directory_conformance!(Arc::new(super::MemoryDirectory::default()));
    crate::key_access_conformance!(Arc::new(super::MemoryDirectory::default()));
}
