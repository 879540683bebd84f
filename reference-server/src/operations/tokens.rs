//! Tokens of the admin API. Only the command creates and revokes them.

use transcript_core::{
    Error, Page, PageRequest, Result,
    admin::{AdminToken, NewAdminToken, OperatorInterface, is_operator_name},
    directory::api_key::{ApiKey, ApiKind},
};
use verbatim::{SystemRandom, Verbatim};

use super::{Completed, Operation, Operations, Operator};

/// Name of an admin token.
#[derive(Clone, Debug)]
pub(crate) struct TokenName(String);

impl TokenName {
    /// Parses a name.
    ///
    /// # Errors
    /// What to give instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match is_operator_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err("give 1 to 64 letters, digits, dots, hyphens, underscores or @".to_owned()),
        }
    }
}

impl Operations {
    /// Creates an admin token with this name, which must never have been used.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Conflict`] if a token has or had this name.
    pub(crate) async fn create_token(&self, TokenName(name): TokenName) -> Result<ApiKey> {
        let token = ApiKey::generate(ApiKind::Admin, &SystemRandom::open()?)?;
        let record = NewAdminToken { name: name.clone(), digest: token.digest(), now: self.verbatim.now() };
        let store = std::sync::Arc::clone(self.verbatim.admin_store());
        let taken = Error::conflict(format!("an admin token has or had the name {name}: choose another one"));
        let work = async move {
            match store.add_admin_token(record).await? {
                true => Ok(Completed::done(token)),
                false => Err(taken),
            }
        };
        self.record(Operation::new("admin-tokens.create").on(name), work).await
    }

    /// Lists the admin tokens by name.
    pub(crate) async fn list_tokens(&self, page: PageRequest) -> Result<Page<AdminToken>> {
        let store = std::sync::Arc::clone(self.verbatim.admin_store());
        self.record_list("admin-tokens.list", async move { store.admin_tokens(page).await }).await
    }

    /// Revokes an admin token.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::NotFound`] without such a live token.
    pub(crate) async fn revoke_token(&self, TokenName(name): TokenName) -> Result<()> {
        let store = std::sync::Arc::clone(self.verbatim.admin_store());
        let (operation, now) = (Operation::new("admin-tokens.revoke").on(name.as_str()), self.verbatim.now());
        let work = async move {
            match store.revoke_admin_token(&name, now).await? {
                true => Ok(Completed::done(())),
                false => Err(Error::not_found(format!("no live admin token has the name {name}"))),
            }
        };
        self.record(operation, work).await
    }
}

/// The operator of a bearer credential; `None` if it is no live admin token.
///
/// # Errors
/// Those of the store.
pub(crate) async fn authenticate(verbatim: &Verbatim, credential: &str) -> Result<Option<Operator>> {
    let Some(token) = ApiKey::parse(credential).filter(|key| key.kind() == ApiKind::Admin) else {
        return Ok(None);
    };
    let name = verbatim.admin_store().admin_name(&token.digest()).await?;
    Ok(name.map(|name| Operator { name, interface: OperatorInterface::Api }))
}
