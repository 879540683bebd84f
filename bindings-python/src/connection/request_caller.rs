//! The caller of the requests of a call.

use std::sync::Arc;

use transcript_core::directory::api_key::ApiKind;
use verbatim::service::{Caller, ConnectionKey};

/// The caller of a call with several requests: each has the current key of the connection.
pub(super) struct RequestCaller {
    caller: Caller,
    key: Arc<ConnectionKey>,
    api: ApiKind,
}

impl RequestCaller {
    pub(super) fn new(caller: Caller, key: Arc<ConnectionKey>, api: ApiKind) -> Self {
        Self { caller, key, api }
    }

    /// The caller of the next request.
    pub(super) fn current(&self) -> Caller {
        Caller { key: self.key.current(self.api), ..self.caller.clone() }
    }
}
