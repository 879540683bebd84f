//! Typed identifiers: each kind of id is its own type, so that they cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{hex, time::Random};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        crate::display::display!($name, |this| this.0);

        impl $name {
            /// Creates the identifier with this text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The identifier's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// A wallet of the ledger: of a key, an account, a visitor or the service.
    WalletId;
    /// A hold; the caller chooses the id. The same id takes effect at most once.
    HoldId;
    /// A grant or a revocation; the caller chooses the id. For a purchase it is the order's id.
    GrantId;
    /// The public name of a key; not the key itself.
    KeyId;
    /// An account of the v1 API.
    AccountId;
    /// An order: the item sold and its price.
    OrderId;
    /// A job of the v1 API.
    JobId;
    /// A session of an account holder in a browser; not its token.
    SessionId;
    /// An entry of the audit log.
    AuditId;
    /// The holder of a lease: one worker of one process.
    Holder;
    /// Where the next page begins; opaque to every component except the store that made it.
    Cursor;
}

/// How the ids of operators' grants begin.
const OPERATOR_PREFIX: &str = "operator-";

impl GrantId {
    /// The id of an operator's grant. Its prefix separates it from grants that have an order's id.
    ///
    /// A name with the prefix is the id itself: the same grant under both names is made once.
    pub fn operator_grant(name: impl fmt::Display) -> Self {
        let name = name.to_string();
        Self(if name.starts_with(OPERATOR_PREFIX) { name } else { format!("{OPERATOR_PREFIX}{name}") })
    }

    /// The name of an operator's grant; `None` for another grant. [`GrantId::operator_grant`] of it is this id.
    ///
    /// Earlier versions stored names with the prefix under a second one. Without it, such a name would be another id.
    pub fn operator_name(&self) -> Option<&str> {
        let name = self.0.strip_prefix(OPERATOR_PREFIX)?;
        Some(if name.starts_with(OPERATOR_PREFIX) { self.0.as_str() } else { name })
    }
}

/// Creates a unique id: a prefix for the kind of item, and 128 random bits.
pub(crate) fn random_id(random: &dyn Random, prefix: &str) -> String {
    [prefix, "-", &hex::encode(&random.bytes(16))].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grant_name_of_operator_leads_to_same_id() {
        for (stored, name) in [
            ("operator-x", Some("x")),
            ("operator-", Some("")),
            ("operator-operator-x", Some("operator-operator-x")),
            ("order-1", None),
        ] {
            let id = GrantId::new(stored);
            assert_eq!(id.operator_name(), name, "{stored}");
            assert!(id.operator_name().is_none_or(|name| GrantId::operator_grant(name) == id), "{stored}");
        }
    }
}
