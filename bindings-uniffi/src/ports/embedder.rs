//! Embedding model of the app.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::chat;

use crate::error::{VerbatimError, to_core};

/// What texts are embedded for. Some models embed both kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum EmbedPurpose {
    /// Questions, which are compared with passages.
    Question,
    /// Passages of a transcript.
    Passage,
}

/// A model that turns texts into vectors. Texts with close vectors mean the same.
#[uniffi::export(foreign)]
#[async_trait]
pub trait EmbeddingModel: Send + Sync {
    /// Name and version of the model; read once. An error is that of the options.
    fn model(&self) -> Result<String, VerbatimError>;

    /// Returns the vector of each text, in order; all vectors have the same length.
    async fn embed(&self, texts: Vec<String>, purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>, VerbatimError>;
}

/// A model of the app as a port of the core.
pub(crate) struct ForeignEmbedder {
    model: Arc<dyn EmbeddingModel>,
    name: String,
}

transcript_core::debug_fields!(ForeignEmbedder { name });

impl ForeignEmbedder {
    /// Reads the name of the model.
    ///
    /// # Errors
    /// Those of the app's code.
    pub(crate) fn new(model: Arc<dyn EmbeddingModel>) -> Result<Self, VerbatimError> {
        Ok(Self { name: model.model()?, model })
    }
}

#[async_trait]
impl chat::Embedder for ForeignEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        purpose: chat::EmbedPurpose,
    ) -> transcript_core::Result<Vec<Vec<f32>>> {
        let purpose = match purpose {
            chat::EmbedPurpose::Question => EmbedPurpose::Question,
            chat::EmbedPurpose::Passage => EmbedPurpose::Passage,
        };
        self.model.embed(texts, purpose).await.map_err(to_core)
    }
}
