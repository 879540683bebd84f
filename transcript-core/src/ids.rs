//! Names of things: each kind of identifier is a type of its own, so that no two are mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Random;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The identifier with this text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The identifier's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A wallet of the ledger: of a key, an account, a visitor or the service.
    WalletId;
    /// A hold, chosen by the caller; the same id never takes effect twice.
    HoldId;
    /// A grant or a revocation, chosen by the caller; an order's id for what was bought.
    GrantId;
    /// The public name of a key; not the key itself.
    KeyId;
    /// An account of Surface B.
    AccountId;
    /// An order: what was sold, at what price.
    OrderId;
    /// Whoever holds a lease: one worker of one process.
    Holder;
    /// Where the next page begins; opaque to everyone but the store that made it.
    Cursor;
}

impl GrantId {
    /// The name of what an operator grants: a prefix of its own keeps these apart from orders'.
    pub fn of_operator(name: impl fmt::Display) -> Self {
        Self::new(format!("operator-{name}"))
    }
}

/// A name that nobody else has: a prefix that says what it names, and 128 random bits.
pub(crate) fn random_name(random: &dyn Random, prefix: &str) -> String {
    let bytes = random.bytes(16);
    let mut name = String::with_capacity(prefix.len() + 1 + 2 * bytes.len());
    name.push_str(prefix);
    name.push('-');
    // Several are made for every request that is charged: a formatter takes many times as long.
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    name.extend(digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    name
}
