//! Requests as Stripe takes them: forms whose fields may be nested, such as `metadata[order]`.

use url::form_urlencoded::Serializer;

/// The fields of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// No fields.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The same with one more field.
    pub(super) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The form as a body or a query.
    pub(super) fn encode(&self) -> String {
        Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}
