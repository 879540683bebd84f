//! Static text embeddings: a table with a vector for each token, computed within the process.
//!
//! [`StaticEmbedder`] implements the port [`Embedder`](transcript_core::chat::Embedder) for a folder in the format of
//! model2vec: `tokenizer.json` and `model.safetensors`. The vector of a text is the mean of those of its tokens.
//!
//! The files are read once, at start. They are not downloaded.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod embedder;
mod table;
#[cfg(test)]
mod tests;

pub use embedder::{MODEL_FILE, StaticEmbedder, TOKENIZER_FILE};

/// Doc tests of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
