//! Conformance cases of the secret store.

use std::sync::Arc;

use super::{call_concurrently, expect_ok};
use crate::directory::SecretStore;

/// Generates one test per case of [`SecretStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! secrets_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::directory::SecretStore; [$crate::testing::secrets];
            first_secret_is_never_replaced
            secrets_are_separate_by_name
            secret_of_any_bytes_round_trips
            concurrent_creates_return_one_secret
        }
    };
}

type SecretTestStore = Arc<dyn SecretStore>;

async fn get_or_create(store: &SecretTestStore, name: &str, secret: Vec<u8>) -> Vec<u8> {
    expect_ok(store.get_or_create(name, secret).await)
}

/// The first stored value stays.
pub async fn first_secret_is_never_replaced(store: SecretTestStore) {
    assert_eq!(
        get_or_create(&store, "a", vec![1, 2]).await,
        [1, 2],
        "a missing secret is set to the new value"
    );
    assert_eq!(get_or_create(&store, "a", vec![3]).await, [1, 2], "later calls return the first value");
    assert_eq!(get_or_create(&store, "a", vec![]).await, [1, 2], "later calls return the first value");
}

/// Each name has a separate secret.
pub async fn secrets_are_separate_by_name(store: SecretTestStore) {
    for (name, secret) in [("a", 1), ("A", 2), ("ä", 3), ("a ", 4)] {
        assert_eq!(get_or_create(&store, name, vec![secret]).await, [secret], "{name:?} is a separate name");
    }
    assert_eq!(get_or_create(&store, "a", vec![9]).await, [1]);
}

/// A secret may contain any bytes.
pub async fn secret_of_any_bytes_round_trips(store: SecretTestStore) {
    let all: Vec<u8> = (0..=255).cycle().take(4_096).collect();
    for (name, secret) in [("all", all), ("one zero", vec![0]), ("invalid text", vec![0xFF, 0xC0])] {
        assert_eq!(get_or_create(&store, name, secret.clone()).await, secret);
        assert_eq!(get_or_create(&store, name, vec![7]).await, secret, "a secret is returned as stored");
    }
}

/// Of concurrently stored secrets one stays, and every call returns it.
pub async fn concurrent_creates_return_one_secret(store: SecretTestStore) {
    let returned =
        call_concurrently(
            &store,
            0..12,
            |store, n| async move { get_or_create(&store, "a", vec![n; 32]).await },
        )
        .await;
    assert!(
        returned.iter().all(|secret| *secret == returned[0]),
        "every call returns the same secret: {returned:?}"
    );
    assert_eq!(get_or_create(&store, "a", vec![99]).await, returned[0], "the secret stays");
}
