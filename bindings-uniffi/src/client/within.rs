//! The service within the process, under the names of a server's.

use std::sync::Arc;

use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::{ChatAsk, Refused, TranscriptAsk, Verification},
    lookup::{
        Availability, CreateKey, CreateKeyOutcome, FailureReason, LookupAsk, Origin, Proof, Reference,
        SourceTag,
    },
    wire::{lookup, v1},
};
use verbatim::Payer;

use super::{
    ChatAnswer, ChatTurn, CreditsPage, KeyCreated, KeyStatus, Lookup, Me, NewKeyRequest, Purchase,
    TextLookup, Verified, bought,
};
use crate::{
    error::{Failure, VerbatimError, count},
    opener::Opener,
    transcript::{Format, Transcript, written},
};

/// One caller.
#[derive(Clone)]
pub(super) struct Within {
    pub(super) opener: Arc<Opener>,
    pub(super) key: Option<String>,
}

type Result<T> = std::result::Result<T, VerbatimError>;

impl Within {
    fn ask(&self, link: String, src: Option<SourceTag>) -> LookupAsk {
        let (reference, key) = (Reference::Url(link), self.key.clone());
        LookupAsk { reference, src, key, proof: None, client: None, default_only: false }
    }

    fn payer(&self, name: Option<String>) -> Payer {
        Payer { key: self.key.clone().unwrap_or_default(), name }
    }

    pub(super) async fn look_up(self, link: String, src: Option<SourceTag>) -> Result<Lookup> {
        let answer = self.opener.open().await?.lookup().look_up(self.ask(link, src)).await?;
        let mut lookup = Lookup {
            transcript: None,
            platform: Some(answer.platform),
            video_id: answer.video_id,
            watch_url: answer.watch_url,
            reason: None,
            sentence: None,
            retry_after: None,
            key: answer.key.as_ref().map(|usage| lookup::KeyObject::from(usage).into()),
        };
        match answer.availability {
            Availability::Available { stored, from_cache } => {
                lookup.transcript = Some(Transcript::of(&stored.transcript, from_cache, stored.revision));
            }
            Availability::Unavailable { reason, message, retry_after, .. } => {
                lookup.reason = Some(reason.as_str().to_owned());
                lookup.sentence = Some(message);
                lookup.retry_after = retry_after;
            }
        }
        Ok(lookup)
    }

    pub(super) async fn text(
        self,
        link: String,
        format: Format,
        src: Option<SourceTag>,
    ) -> Result<TextLookup> {
        let answer = self.opener.open().await?.lookup().look_up(self.ask(link, src)).await?;
        Ok(match answer.availability {
            Availability::Available { stored, .. } => TextLookup {
                text: Some(written(&stored.transcript, format)),
                sentence: None,
                watch_url: None,
                is_allowance_spent: false,
            },
            Availability::Unavailable { reason, message, .. } => TextLookup {
                text: None,
                sentence: Some(message),
                watch_url: Some(answer.watch_url),
                is_allowance_spent: reason == FailureReason::KeyAllowance,
            },
        })
    }

    pub(super) async fn create_key(self, request: NewKeyRequest) -> Result<KeyCreated> {
        let NewKeyRequest { label, email, entitlement } = request;
        let ask = CreateKey { label, email, proof: entitlement.map(Proof::new), origin: Origin::Operator };
        let limited = |message: String, after_ms: u64| {
            Refused::RateLimited { message, retry_after_s: after_ms.div_ceil(1_000), rate: None }.into()
        };
        match self.opener.open().await?.lookup().create_key(ask).await? {
            CreateKeyOutcome::Created(created) => {
                let lookup::KeyCreated { key, status } = lookup::KeyCreated::from(&created);
                Ok(KeyCreated { key, status: status.into() })
            }
            CreateKeyOutcome::Bad(bad) => Err(Failure::invalid(format!("{}: {}", bad.field, bad.message))),
            CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
                let message = format!("There are {limit} live keys of this plan already.");
                Err(limited(message, retry_after_ms.unwrap_or_default()))
            }
            CreateKeyOutcome::Limited { retry_after_ms } => {
                Err(limited("Too many keys were made.".to_owned(), retry_after_ms))
            }
        }
    }

    pub(super) async fn key_status(self, entitlement: Option<String>) -> Result<KeyStatus> {
        let (key, proof) = (self.key.clone().unwrap_or_default(), entitlement.map(Proof::new));
        match self.opener.open().await?.lookup().key_status(&key, proof.as_ref()).await? {
            Some(status) => Ok(lookup::KeyStatus::from(&status).into()),
            None => Err(Refused::Unauthorized("This key is not known.".to_owned()).into()),
        }
    }

    pub(super) async fn register(self, email: String) -> Result<String> {
        self.opener.open().await?.accounts().register(&email, None).await?;
        Ok("A mail is on its way.".to_owned())
    }

    pub(super) async fn verify(self, token: String, confirmed: bool) -> Result<Verified> {
        match self.opener.open().await?.accounts().verify(&token, confirmed, None).await? {
            Verification::Issued(key) => Ok(v1::Verified::from(&key).into()),
            Verification::NeedsConfirmation => {
                let message = "The account has a key, which this would end: confirm it.";
                Err(Refused::Conflict(message.to_owned()).into())
            }
        }
    }

    pub(super) async fn me(self) -> Result<Me> {
        let key = self.key.clone().unwrap_or_default();
        Ok(self.opener.open().await?.account_of(key).await?.into())
    }

    pub(super) async fn rotate_key(self) -> Result<String> {
        let key = self.key.clone().unwrap_or_default();
        Ok(self.opener.open().await?.rotate_key(key).await?.api_key)
    }

    pub(super) async fn transcript(
        self,
        link: String,
        lang: Option<String>,
        name: Option<String>,
    ) -> Result<Purchase> {
        let ask = TranscriptAsk { url: Some(link), lang, video_id: None };
        let answer = self.opener.open().await?.buy_transcript(self.payer(name), ask).await?;
        let charge = answer.charge;
        Ok(Purchase {
            transcript: bought(answer.body, charge.from_cache.unwrap_or_default())?,
            credits_remaining: charge.credits_remaining.map(count),
            is_replayed: charge.is_replayed,
        })
    }

    pub(super) async fn chat(
        self,
        video_id: String,
        message: String,
        history: Vec<ChatTurn>,
        name: Option<String>,
    ) -> Result<ChatAnswer> {
        let history = history.into_iter().map(Into::into).collect();
        let ask = ChatAsk { video_id, message, history };
        Ok(self.opener.open().await?.buy_answer(self.payer(name), ask).await?.body.into())
    }

    pub(super) async fn subscribe(self, _: String, _: Option<String>) -> Result<CreditsPage> {
        not_sold()
    }

    pub(super) async fn buy_credits(self, _: String, _: Option<String>) -> Result<CreditsPage> {
        not_sold()
    }
}

/// What only a server does: it has pages on which people pay.
fn not_sold() -> Result<CreditsPage> {
    let message = "nothing is sold within the process: a server does that";
    Err(Error::new(ErrorKind::Unsupported, Retry::Never, message).into())
}
