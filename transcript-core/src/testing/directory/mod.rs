//! The cases of the directory.

mod accounts;
mod keys;
mod tokens;

use std::sync::Arc;

pub use accounts::*;
pub use keys::*;
pub use tokens::*;

use super::{at, done};
use crate::{
    directory::{Account, AccountRef, Directory, LookupKey, NewKey, Owner, Redeem, Redeemed, Token},
    ids::{AccountId, KeyId, WalletId},
};

/// Makes a test of every case of [`Directory`]; see [`crate::testing`].
#[macro_export]
macro_rules! directory_conformance {
    ($make:expr) => {
        $crate::directory_conformance_cases!(conformance_cases; $make;);
    };
}

/// The names of the cases, for whoever makes something of them.
#[doc(hidden)]
#[macro_export]
macro_rules! directory_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::directory::Directory; [$crate::testing::directory];
            a_key_opens_for_its_owner
            a_key_is_added_once
            a_key_with_anothers_id_or_digest_is_a_conflict
            a_subject_has_only_so_many_live_plus_keys
            a_full_subject_has_room_again
            subjects_at_once_never_go_beyond_their_limit
            an_entitlement_is_put_off_by_its_own_subject
            an_ended_entitlement_needs_room_again
            a_rotated_key_is_dead_at_once
            a_rotation_never_takes_effect_twice
            a_rotation_to_a_stored_key_is_a_conflict
            rotating_at_once_is_won_by_one
            a_revoked_key_is_dead
            keys_come_in_pages

            a_token_makes_an_account_with_its_key
            a_token_is_used_once
            the_same_redemption_again_tells_what_it_did
            a_token_ends_at_its_moment
            an_address_with_an_account_needs_confirmation
            a_confirmed_token_replaces_the_keys
            redeeming_voids_the_other_tokens_of_the_address
            a_token_of_another_address_is_a_conflict
            a_used_token_is_not_made_fresh_by_putting_it_again
            a_redemption_that_contradicts_changes_nothing
            redeeming_at_once_is_won_by_one
            two_tokens_at_once_make_one_account

            an_account_is_found_by_every_reference
            an_account_is_changed_by_who_read_it_last
            address_and_wallet_never_change
            a_customer_is_one_accounts
            changing_at_once_is_won_by_one
            a_blocked_account_keeps_its_key
            an_account_key_is_rotated_and_revoked
            an_erased_account_is_gone
            an_erased_address_registers_anew
            accounts_come_in_pages
        }
    };
}

type Store = Arc<dyn Directory>;

/// The digest that stands for the secret with this name.
fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0xA5)).take(32).collect()
}

/// A new key whose secret has the name of its id.
fn new_key(id: &str, seconds: i64) -> NewKey {
    NewKey { id: KeyId::new(id), digest: digest(id), hint: format!("vbk_{id}"), now: at(seconds) }
}

fn lookup_key(id: &str, seconds: i64) -> LookupKey {
    LookupKey {
        key: new_key(id, seconds),
        wallet: WalletId::new(format!("wallet of {id}")),
        label: Some(format!("Label «{id}» 🦀")),
        email: None,
        subject: None,
        entitled_until: None,
    }
}

/// A plus key of a subject, entitled from one moment until another.
fn plus_key(id: &str, subject: &str, from: i64, until: i64) -> LookupKey {
    LookupKey { subject: Some(subject.to_owned()), entitled_until: Some(at(until)), ..lookup_key(id, from) }
}

/// A token that ends after 1,000 seconds; its secret has this name.
fn token(name: &str, email: &str) -> Token {
    Token { digest: digest(name), email: email.to_owned(), expires_at: at(1_000), now: at(0) }
}

/// To redeem a token for a key, at the moment 10.
fn redemption(token: &str, key: &str, confirmed: bool) -> Redeem {
    Redeem {
        digest: digest(token),
        confirmed,
        new_account: AccountId::new(format!("account of {token}")),
        new_wallet: WalletId::new(format!("wallet of {token}")),
        key: new_key(key, 10),
    }
}

async fn redeem(store: &Store, token: &str, key: &str, confirmed: bool) -> Redeemed {
    done(store.redeem(redemption(token, key, confirmed)).await)
}

/// Registers an address for the first time; the token's secret has the address's name.
async fn register(store: &Store, email: &str, key: &str) -> Account {
    done(store.put_token(token(email, email)).await);
    match redeem(store, email, key, false).await {
        Redeemed::Issued { account, first: true } => account,
        other => panic!("a fresh token of a new address makes an account; it was {other:?}"),
    }
}

async fn owner(store: &Store, key: &str) -> Option<Owner> {
    done(store.owner(&digest(key)).await)
}

async fn by_email(store: &Store, email: &str) -> Option<Account> {
    done(store.account(&AccountRef::Email(email.to_owned())).await)
}
