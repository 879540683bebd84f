//! Accounts and keys that an operator issues without a mail.
//!
//! The operator redeems a verification token that is never sent, so that creation and replacement of keys have one
//! implementation.

use std::{sync::Arc, time::Duration};

use super::AccountAdmin;
use crate::{
    directory::{
        Account, EraseOutcome, NewKeyRecord, RedeemOutcome, RedeemRequest, VerificationToken,
        api_key::{ApiKey, ApiKind},
    },
    error::{Error, Result},
    ids::{AccountId, KeyId, WalletId},
    text::{is_one_line, is_visible},
};

/// Longest name of an account without an email address, in characters.
const NAME_LENGTH_MAX: usize = 100;
/// Length of a token's digest in bytes.
const DIGEST_LENGTH: u32 = 32;
/// Validity of the token, which is redeemed at once.
const TOKEN_LIFETIME: Duration = Duration::from_secs(600);

impl AccountAdmin {
    /// Creates an account without an email address, under a name; returns it with its key.
    ///
    /// The name takes the place of the address. No mail is sent to it, so a lost key is replaced by
    /// [`AccountAdmin::issue_key`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for a name that shows nothing, is too long, not on one line, or contains `@`;
    /// [`crate::ErrorKind::Conflict`] if an account has this name; the errors of the ports.
    pub async fn create(self: &Arc<Self>, name: &str) -> Result<(Account, ApiKey)> {
        let (admin, name) = (Arc::clone(self), parse_name(name)?);
        let work = async move {
            match admin.redeem_own_token(&name, false).await? {
                (RedeemOutcome::Issued { account, .. }, key) => Ok((account, key)),
                _ => Err(Error::conflict("an account with this name exists")),
            }
        };
        self.context.transcripts.task(work).await?
    }

    /// Replaces the keys of an account by a new one.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`]; the errors of the ports.
    pub async fn issue_key(self: &Arc<Self>, selector: &str) -> Result<(Account, ApiKey)> {
        let (admin, selector) = (Arc::clone(self), selector.to_owned());
        let work = async move {
            let account = admin.find(&selector).await?;
            match admin.redeem_own_token(&account.email, true).await? {
                (RedeemOutcome::Issued { account, first: false }, key) => return Ok((account, key)),
                // It was erased since it was found. The token has stored its address again, in a new account.
                (RedeemOutcome::Issued { account: new, first: true }, _) => {
                    let erased = admin.erase_version(&new, new.version, admin.context.now()).await?;
                    if erased == EraseOutcome::Stale {
                        tracing::warn!(account = %new.id, "account created by a key replacement was not erased");
                    }
                }
                (RedeemOutcome::NeedsConfirmation | RedeemOutcome::Invalid, _) => {}
            }
            Err(Error::conflict("the account was erased at the same time"))
        };
        self.context.transcripts.task(work).await?
    }

    /// Stores a token for an address and redeems it.
    async fn redeem_own_token(&self, email: &str, confirmed: bool) -> Result<(RedeemOutcome, ApiKey)> {
        let (context, directory) = (&self.context, &self.directory);
        let now = context.now();
        let key = ApiKey::generate(ApiKind::V1, context.random.as_ref())?;
        let token = VerificationToken {
            digest: context.random.bytes(DIGEST_LENGTH),
            email: email.to_owned(),
            expires_at: now.plus(TOKEN_LIFETIME),
            now,
        };
        let redeem = RedeemRequest {
            digest: token.digest.clone(),
            confirmed,
            new_account: AccountId::new(context.random_id("account")),
            new_wallet: WalletId::new(context.random_id("account")),
            key: NewKeyRecord {
                id: KeyId::new(context.random_id("key")),
                digest: key.digest(),
                hint: key.hint(),
                now,
            },
        };
        context.retry_store(|| directory.put_token(token.clone())).await?;
        Ok((context.retry_store(|| directory.redeem(redeem.clone())).await?, key))
    }
}

/// The name of an account without surrounding white space.
fn parse_name(name: &str) -> Result<String> {
    let name = name.trim();
    let is_short = name.chars().count() <= NAME_LENGTH_MAX;
    let is_allowed = is_short && is_one_line(name) && is_visible(name) && !name.contains('@');
    if is_allowed {
        Ok(name.to_owned())
    } else {
        Err(Error::invalid("name: give 1 to 100 visible characters on one line, without @"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_name_is_no_address() {
        assert_eq!(parse_name(" Example & Söhne GmbH ").unwrap(), "Example & Söhne GmbH");
        let hidden = ["\u{200b}", "\u{feff}", "a\u{2028}b", "a\u{202e}b"];
        for name in
            ["", "  ", "ann@example.org", "a\nb", "a\u{7}", &"x".repeat(101)].into_iter().chain(hidden)
        {
            parse_name(name).unwrap_err();
        }
    }
}
