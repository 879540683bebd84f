//! The service's secrets in memory.

use std::collections::HashMap;

use async_trait::async_trait;

use super::Shared;
use crate::{directory::Secrets, error::Result};

/// [`Secrets`] in memory. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemorySecrets {
    secrets: Shared<HashMap<String, Vec<u8>>>,
}

#[async_trait]
impl Secrets for MemorySecrets {
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        Ok(self.secrets.lock().entry(name.to_owned()).or_insert(fresh).clone())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::secrets_conformance!(Arc::new(super::MemorySecrets::default()));

    #[tokio::test]
    async fn a_secret_is_never_printed() {
        use crate::directory::Secrets;

        let secrets = super::MemorySecrets::default();
        secrets.secret("name", vec![217; 4]).await.unwrap();
        assert!(!format!("{secrets:?}").contains("217"));
    }
}
