//! Who calls the service.

use std::net::IpAddr;

use crate::{
    directory::api_key::{ApiKey, ApiKind},
    lookup::{AttributionTag, EntitlementProof},
};

/// The caller of one operation; by default anonymous.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The API key: `vbk_…` of the lookup API, `vba_…` of the v1 API.
    pub key: Option<String>,
    /// A proof of a paid plan.
    pub proof: Option<EntitlementProof>,
    /// The idempotency key: 1 to 255 visible ASCII characters. Requests with the same one are charged once.
    pub idempotency_key: Option<String>,
    /// The network address, if known. Without one, limits of networks do not apply.
    pub client: Option<IpAddr>,
    /// The attribution tag of watch URLs.
    pub src: Option<AttributionTag>,
}

impl Caller {
    /// A caller with this key.
    pub fn with_key(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// Whether the key belongs to an account.
    pub fn has_account_key(&self) -> bool {
        self.key.as_deref().and_then(ApiKey::parse).is_some_and(|key| key.kind() == ApiKind::V1)
    }
}

// Without key and proof.
crate::debug_fields!(Caller |this| { has_key: this.key.is_some(), src });
