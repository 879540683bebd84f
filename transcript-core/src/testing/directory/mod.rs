//! Conformance cases of the directory.

mod account_keys;
mod accounts;
mod key_access;
mod keys;
mod tokens;

use std::sync::Arc;

pub use account_keys::*;
pub use accounts::*;
pub use key_access::*;
pub use keys::*;
pub use tokens::*;

use super::{at, expect_ok};
use crate::{
    directory::{
        Account, AccountRef, Directory, KeyAccess, KeyOwner, LookupKey, NewKeyRecord, RedeemOutcome,
        RedeemRequest, VerificationToken,
    },
    ids::{AccountId, KeyId, WalletId},
};

/// Generates one test per case of [`Directory`]; see [`crate::testing`].
#[macro_export]
macro_rules! directory_conformance {
    ($make:expr) => {
        $crate::directory_conformance_cases!(conformance_cases; $make;);
    };
}

/// Case names of the directory, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! directory_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::directory::Directory; [$crate::testing::directory];
            key_added_returns_its_owner
            key_added_again_changes_nothing
            key_with_used_id_or_digest_is_conflict
            subject_at_limit_gets_no_more_plus_keys
            revoked_or_ended_plus_keys_are_not_counted
            concurrent_adds_never_exceed_subject_limit
            entitlement_is_renewed_by_own_subject_only
            ended_entitlement_is_renewed_within_limit
            rotated_key_is_dead_at_once
            rotation_of_dead_key_is_stale
            rotation_to_stored_key_is_conflict
            concurrent_rotations_take_effect_once
            revoked_key_is_dead
            keys_are_paged_oldest_first

            token_of_new_address_creates_account_and_key
            token_is_used_once
            redeem_repeated_returns_first_outcome
            token_is_invalid_at_expiry
            redeem_for_existing_account_needs_confirmation
            confirmed_redeem_replaces_keys
            redeem_voids_other_tokens_of_address
            token_of_other_address_is_conflict
            used_token_put_again_stays_used
            redeem_with_used_key_or_account_is_conflict
            concurrent_redeems_of_one_token_issue_once
            concurrent_redeems_of_one_address_create_one_account

            account_is_found_by_every_reference
            account_update_requires_latest_version
            account_address_and_wallet_never_change
            customer_of_other_account_is_conflict
            concurrent_account_updates_take_effect_once
            blocked_account_keeps_its_key
            account_key_is_rotated_and_revoked
            erased_account_is_not_found
            erased_address_registers_as_new_account
            accounts_are_paged_oldest_first
        }
    };
}

/// Generates one test per case of the expiry, quota and counts of keys and of several keys for an account, which a
/// [`Directory`] may leave out.
#[macro_export]
macro_rules! key_access_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::directory::Directory; [$crate::testing::directory];
            key_access_is_stored_and_changed
            key_requests_are_added
            concurrent_key_requests_are_all_counted
            account_keys_are_its_live_ones
            account_key_is_added_beside_others
            account_key_with_used_id_or_digest_is_conflict
            account_keys_end_with_redemption_and_erasure
            concurrent_account_keys_never_exceed_limit
            account_key_use_is_listed_until_rotation
            token_of_corrected_clock_is_invalid
        }
    };
}

type DirectoryStore = Arc<dyn Directory>;

/// Digest of the secret with this name.
fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0xA5)).take(32).collect()
}

/// New key whose secret is named like its id.
fn new_key(id: &str, seconds: i64) -> NewKeyRecord {
    NewKeyRecord { id: KeyId::new(id), digest: digest(id), hint: format!("vbk_{id}"), now: at(seconds) }
}

fn lookup_key(id: &str, seconds: i64) -> LookupKey {
    LookupKey {
        key: new_key(id, seconds),
        wallet: WalletId::new(format!("wallet of {id}")),
        label: Some(format!("Label «{id}» 🦀")),
        email: None,
        subject: None,
        entitled_until: None,
        access: KeyAccess::default(),
    }
}

/// Plus key of a subject with an entitlement from one time until another.
fn plus_key(id: &str, subject: &str, from: i64, expires_at: i64) -> LookupKey {
    LookupKey {
        subject: Some(subject.to_owned()),
        entitled_until: Some(at(expires_at)),
        ..lookup_key(id, from)
    }
}

/// Token that expires after 1,000 seconds; its secret has this name.
fn token(name: &str, email: &str) -> VerificationToken {
    VerificationToken { digest: digest(name), email: email.to_owned(), expires_at: at(1_000), now: at(0) }
}

/// Request at time 10 to redeem a token for a key.
fn redemption(token: &str, key: &str, confirmed: bool) -> RedeemRequest {
    RedeemRequest {
        digest: digest(token),
        confirmed,
        new_account: AccountId::new(format!("account of {token}")),
        new_wallet: WalletId::new(format!("wallet of {token}")),
        key: new_key(key, 10),
    }
}

async fn redeem(store: &DirectoryStore, token: &str, key: &str, confirmed: bool) -> RedeemOutcome {
    expect_ok(store.redeem(redemption(token, key, confirmed)).await)
}

/// Registers a new address; the secret of its token is named like the address.
async fn register(store: &DirectoryStore, email: &str, key: &str) -> Account {
    expect_ok(store.put_token(token(email, email)).await);
    match redeem(store, email, key, false).await {
        RedeemOutcome::Issued { account, first: true } => account,
        other => panic!("a new token of a new address creates an account; got {other:?}"),
    }
}

fn v1_owner(key: &str, account: &Account) -> Option<KeyOwner> {
    Some(KeyOwner::Account { key: KeyId::new(key), account: account.clone() })
}

/// The owner of a key of the lookup API.
fn lookup_owner(key: LookupKey) -> Option<KeyOwner> {
    Some(KeyOwner::Lookup(key))
}

async fn owner(store: &DirectoryStore, key: &str) -> Option<KeyOwner> {
    expect_ok(store.key_owner(&digest(key)).await)
}

async fn by_email(store: &DirectoryStore, email: &str) -> Option<Account> {
    expect_ok(store.account(&AccountRef::Email(email.to_owned())).await)
}
