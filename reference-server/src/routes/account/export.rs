//! The data of an account as JSON, page by page: `/account/export`, and the exports of the admin API and the command.
//!
//! An account may have millions of ledger entries: only a page of them is in memory.

use std::{mem::take, sync::Arc};

use axum::{body::Body, extract::State, response::Response};
use serde::Serialize;
use transcript_core::{
    Error, PageRequest, Result,
    accounts::{AccountAdmin, AccountExport as Export},
    ids::AccountId,
    wire::v1::{AccountExport, StatementLine},
};

use super::{failure, session::SignedIn, statement::attachment, store_failure};
use crate::{page::PageContext, state::AppState};

/// The statement in an export without entries. In a text its quotes would be escaped.
const NO_ENTRIES: &str = "\"statement\":[]";
/// The same with an open end.
const OPEN_STATEMENT: &str = "\"statement\":[";

/// What is stored about the account, as JSON.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    if let Err(error) = app.accounts.admin.count_download(&principal.account).await {
        return failure(&context, &error);
    }
    let admin = &app.accounts.admin;
    let export = admin.export_without_entries(&principal.account).await;
    match export.and_then(|export| ExportBody::new(Arc::clone(admin), &export)) {
        Ok(body) => attachment(body.into_body(), "application/json", "account.json"),
        Err(error) => store_failure(&context, &error),
    }
}

fn text(part: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string(part);
    json.map_err(|error| Error::unexpected(format!("cannot serialize an export: {error}")))
}

/// An export that is still to be sent.
pub(crate) struct ExportBody {
    admin: Arc<AccountAdmin>,
    account: AccountId,
    /// What precedes the first entry; empty once it is sent.
    head: String,
    /// What precedes the next entry.
    separator: &'static str,
    /// What follows the last entry.
    tail: String,
    /// The next page of entries; `None` at the end.
    next: Option<PageRequest>,
}

impl ExportBody {
    /// The body of an export without entries.
    ///
    /// # Errors
    /// Only if the serializer fails; no export causes that.
    pub(crate) fn new(admin: Arc<AccountAdmin>, export: &Export) -> Result<Self> {
        let json = text(&AccountExport::from(export))?;
        let Some((head, tail)) = json.split_once(NO_ENTRIES) else {
            return Err(Error::unexpected("the export of an account has no statement"));
        };
        Ok(Self {
            admin,
            account: export.view.account.id.clone(),
            head: format!("{head}{OPEN_STATEMENT}"),
            separator: "\n",
            tail: format!("\n]{tail}\n"),
            next: Some(PageRequest::first()),
        })
    }

    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::try_unfold(self, |mut body| async move {
            let part = body.next_part().await.inspect_err(|error| {
                tracing::warn!(account = %body.account, %error, "export of an account broken off");
            })?;
            Ok::<_, Error>(part.map(|part| (part, body)))
        }))
    }

    /// The next part of the body; `None` at its end.
    pub(crate) async fn next_part(&mut self) -> Result<Option<String>> {
        let Some(request) = self.next.take() else { return Ok(None) };
        let found = self.admin.statement(self.account.as_str(), request).await?;
        let mut part = take(&mut self.head);
        for entry in &found.items {
            part.push_str(self.separator);
            part.push_str(&text(&StatementLine::from(entry))?);
            self.separator = ",\n";
        }
        match found.next {
            Some(after) => self.next = Some(PageRequest { after: Some(after), ..PageRequest::first() }),
            None => part.push_str(&self.tail),
        }
        Ok(Some(part))
    }
}
