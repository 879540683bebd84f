//! The in-memory secret store.

use std::collections::HashMap;

use async_trait::async_trait;

use super::SharedState;
use crate::{directory::SecretStore, error::Result};

/// An in-memory [`SecretStore`]. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemorySecrets {
    secrets: SharedState<HashMap<String, Vec<u8>>>,
}

#[async_trait]
impl SecretStore for MemorySecrets {
    async fn get_or_create(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        Ok(self.secrets.lock().entry(name.to_owned()).or_insert(fresh).clone())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::secrets_conformance!(Arc::new(super::MemorySecrets::default()));

    #[tokio::test]
    async fn secret_store_debug_hides_values() {
        use crate::directory::SecretStore;

        let secrets = super::MemorySecrets::default();
        secrets.get_or_create("name", vec![217; 4]).await.unwrap();
        assert!(!format!("{secrets:?}").contains("217"));
    }
}
