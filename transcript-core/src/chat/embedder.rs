//! Port to a model that turns texts into vectors, whose directions are close if the texts mean the same.

use std::fmt;

use async_trait::async_trait;

use crate::error::{Error, Result};

/// Maximum of texts in one call.
pub const EMBED_TEXTS_MAX: usize = 4_096;
/// Maximum of numbers in a vector.
pub const EMBED_DIMENSIONS_MAX: usize = 4_096;

/// What texts are embedded for. Some models are trained to embed both kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// Questions, which are compared with passages.
    Question,
    /// Passages of a transcript.
    Passage,
}

impl EmbedPurpose {
    /// `question` or `passage`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Passage => "passage",
        }
    }
}

/// A model of text embeddings.
///
/// Its output is untrusted: vectors of a wrong number, length or value are an error, and the answer is searched by
/// words.
#[async_trait]
pub trait Embedder: fmt::Debug + Send + Sync + 'static {
    /// Name and version of the model, such as `text-embedding-3-small`.
    ///
    /// Vectors are stored and compared under this name: another model, or the same one with other options, has another
    /// name.
    fn model(&self) -> &str;

    /// Whether the model reads the words of a text in their context.
    ///
    /// A static model only sums the vectors of words: its similarities decide less beside the words themselves.
    fn is_contextual(&self) -> bool {
        true
    }

    /// Whether the model runs within the process: a call takes milliseconds and costs nothing.
    fn is_local(&self) -> bool {
        false
    }

    /// Returns the vector of each text, in order; at most [`EMBED_TEXTS_MAX`] texts.
    ///
    /// All vectors of a model have the same length, from 1 to [`EMBED_DIMENSIONS_MAX`]. Their scale has no meaning. A
    /// vector of zeros is a text about which the model knows nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the model cannot be reached or is too slow, [`crate::ErrorKind::Invalid`]
    /// if it rejects the texts, [`crate::ErrorKind::Corrupt`] if its answer cannot be parsed.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    async fn embed(&self, texts: Vec<String>, purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>>;
}

/// Vectors of texts with equal length, each scaled to eight bits a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextVectors {
    dimensions: usize,
    values: Vec<i8>,
}

/// Largest value of a number in eight bits.
const VALUE_MAX: f32 = 127.0;

impl TextVectors {
    /// Stores vectors in eight bits a number.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if their number is not `count`, or their lengths differ or are not from 1 to
    /// [`EMBED_DIMENSIONS_MAX`], or a number is not finite.
    pub(super) fn new(vectors: &[Vec<f32>], count: usize) -> Result<Self> {
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors.len() != count {
            return Err(corrupt(&format!("{} vectors for {count} texts", vectors.len())));
        }
        if count > 0 && !(1..=EMBED_DIMENSIONS_MAX).contains(&dimensions) {
            return Err(corrupt(&format!("a vector of {dimensions} numbers")));
        }
        let mut values = Vec::with_capacity(count.saturating_mul(dimensions));
        for vector in vectors {
            if vector.len() != dimensions {
                return Err(corrupt("vectors of different lengths"));
            }
            if !vector.iter().all(|value| value.is_finite()) {
                return Err(corrupt("a number that is not finite"));
            }
            let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let factor = if largest > 0.0 { VALUE_MAX / largest } else { 0.0 };
            // Within -127 to 127 by the choice of the factor.
            values.extend(vector.iter().map(|value| (value * factor).round() as i8));
        }
        Ok(Self { dimensions, values })
    }

    /// Bytes in memory, approximately.
    pub(super) fn memory_bytes(&self) -> u64 {
        size_of::<Self>().saturating_add(self.values.len()) as u64
    }

    /// Cosine similarity of each vector to the first one of others, from -1 to 1; 0 for a vector of zeros.
    ///
    /// `None` if the lengths of the vectors differ.
    pub(super) fn similarities(&self, other: &Self) -> Option<Vec<f32>> {
        let query = other.values.get(..other.dimensions)?;
        if other.dimensions != self.dimensions || self.dimensions == 0 {
            return None;
        }
        let query_length = length(query);
        let similarity = |vector: &[i8]| {
            let product = dot(vector, query) as f32;
            product / (length(vector) * query_length).max(f32::MIN_POSITIVE)
        };
        Some(self.values.chunks_exact(self.dimensions).map(similarity).collect())
    }
}

/// The product fits: 4,096 times 127 squared is below 2^27.
fn dot(one: &[i8], other: &[i8]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
}

fn length(vector: &[i8]) -> f32 {
    (dot(vector, vector) as f32).sqrt()
}

fn corrupt(what: &str) -> Error {
    let message = format!("the embedding model returned {what}");
    Error::new(crate::ErrorKind::Corrupt, crate::Retry::Never, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_keep_direction_in_eight_bits() {
        let vectors = TextVectors::new(&[vec![3.0, 4.0], vec![-30.0, 40.0], vec![0.0, 0.0]], 3).unwrap();
        let query = TextVectors::new(&[vec![0.6, 0.8]], 1).unwrap();
        let similarities = vectors.similarities(&query).unwrap();
        let expect = [1.0, 0.28, 0.0];
        let is_near = |(one, other): (&f32, f32)| (one - other).abs() < 0.01;
        assert!(similarities.iter().zip(expect).all(is_near), "{similarities:?}");
        let longer = TextVectors::new(&[vec![1.0; 3]], 1).unwrap();
        assert_eq!(
            (vectors.similarities(&longer), TextVectors::default().similarities(&query)),
            (None, None)
        );
    }

    #[test]
    fn invalid_vectors_are_errors() {
        for (vectors, count) in [
            (vec![vec![1.0]], 2),
            (vec![vec![]], 1),
            (vec![vec![1.0], vec![1.0, 2.0]], 2),
            (vec![vec![f32::NAN]], 1),
            (vec![vec![f32::INFINITY, 1.0]], 1),
            (vec![vec![0.5; EMBED_DIMENSIONS_MAX + 1]], 1),
        ] {
            let error = TextVectors::new(&vectors, count).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
        }
        assert_eq!(TextVectors::new(&[], 0).unwrap(), TextVectors::default());
    }
}
