//! The cases of the service's secrets.

use std::sync::Arc;

use super::{done, together};
use crate::directory::Secrets;

/// Makes a test of every case of [`Secrets`]; see [`crate::testing`].
#[macro_export]
macro_rules! secrets_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::directory::Secrets; [$crate::testing::secrets];
            the_first_secret_stays
            secrets_are_apart_by_name
            any_bytes_are_a_secret
            storing_at_once_agrees_on_one
        }
    };
}

type Store = Arc<dyn Secrets>;

/// Whoever stores first wins.
pub async fn the_first_secret_stays(store: Store) {
    assert_eq!(done(store.secret("a", vec![1, 2]).await), [1, 2], "where there is none, the fresh one is it");
    assert_eq!(done(store.secret("a", vec![3]).await), [1, 2], "everyone gets the first one");
    assert_eq!(done(store.secret("a", vec![]).await), [1, 2], "everyone gets the first one");
}

/// Each name has a secret of its own.
pub async fn secrets_are_apart_by_name(store: Store) {
    for (name, secret) in [("a", 1), ("A", 2), ("ä", 3), ("a ", 4)] {
        assert_eq!(done(store.secret(name, vec![secret]).await), [secret], "{name:?} is a name of its own");
    }
    assert_eq!(done(store.secret("a", vec![9]).await), [1]);
}

/// A secret is any bytes.
pub async fn any_bytes_are_a_secret(store: Store) {
    let all: Vec<u8> = (0..=255).cycle().take(4_096).collect();
    for (name, secret) in [("all", all), ("one zero", vec![0]), ("invalid text", vec![0xFF, 0xC0])] {
        assert_eq!(done(store.secret(name, secret.clone()).await), secret);
        assert_eq!(done(store.secret(name, vec![7]).await), secret, "a secret comes back as it was stored");
    }
}

/// Of secrets stored at once one stays, and everyone gets that one.
pub async fn storing_at_once_agrees_on_one(store: Store) {
    let given = together((0..12).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.secret("a", vec![n; 32]).await) }
    }))
    .await;
    assert!(given.iter().all(|secret| *secret == given[0]), "everyone gets the same one: {given:?}");
    assert_eq!(done(store.secret("a", vec![99]).await), given[0], "and it stays");
}
