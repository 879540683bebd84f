//! Stripe's request encoding: forms with nested fields, such as `metadata[order]`.

use url::form_urlencoded::Serializer;

/// The fields of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StripeForm(Vec<(String, String)>);

impl StripeForm {
    /// An empty form.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    pub(super) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// Encodes the form as a body or a query.
    pub(super) fn encode(&self) -> String {
        Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}
