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

/// Version of the encoding of [`TextVectors::encode`]: its first byte.
const FORMAT: u8 = 1;
/// Bytes before the numbers: the format, and their count in a vector.
const HEADER_LENGTH: usize = 3;
const CHECKSUM_LENGTH: usize = 4;

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

    /// Numbers in a vector; 0 if there are no vectors.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Encodes the vectors: format, numbers in a vector, all numbers, and a checksum of these and of the key.
    pub(super) fn encode(&self, key: &[u8; 32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LENGTH + self.values.len() + CHECKSUM_LENGTH);
        bytes.push(FORMAT);
        // At most [`EMBED_DIMENSIONS_MAX`].
        bytes.extend((self.dimensions as u16).to_le_bytes());
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        let checksum = checksum(key, &bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Decodes the vectors of `count` texts that were encoded with this key; `None` if they are damaged, of another
    /// key, or of another format.
    pub(super) fn decode(bytes: &[u8], key: &[u8; 32], count: usize) -> Option<Self> {
        let (content, stored) = bytes.split_last_chunk::<CHECKSUM_LENGTH>()?;
        let (header, values) = content.split_first_chunk::<HEADER_LENGTH>()?;
        let [FORMAT, dimensions @ ..] = *header else { return None };
        let dimensions = usize::from(u16::from_le_bytes(dimensions));
        let is_sound = values.len() == count.checked_mul(dimensions)?
            && dimensions <= EMBED_DIMENSIONS_MAX
            && u32::from_le_bytes(*stored) == checksum(key, content);
        is_sound.then(|| Self {
            dimensions,
            values: values.iter().map(|byte| i8::from_le_bytes([*byte])).collect(),
        })
    }

    /// Bytes in memory, approximately.
    pub(super) fn memory_bytes(&self) -> u64 {
        size_of::<Self>().saturating_add(self.values.len()) as u64
    }

    /// Cosine similarities of each vector to each of others, which come first; from -1 to 1, and 0 for a vector of
    /// zeros.
    ///
    /// No list if the lengths of the vectors differ.
    pub(super) fn similarities(&self, others: &Self) -> Vec<Vec<f32>> {
        if others.dimensions != self.dimensions || self.dimensions == 0 {
            return Vec::new();
        }
        let to_one = |other: &[i8]| {
            let other_length = length(other);
            let similarity = |vector: &[i8]| {
                let product = dot(vector, other) as f32;
                product / (length(vector) * other_length).max(f32::MIN_POSITIVE)
            };
            self.values.chunks_exact(self.dimensions).map(similarity).collect()
        };
        others.values.chunks_exact(self.dimensions).map(to_one).collect()
    }
}

fn checksum(key: &[u8; 32], content: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(key);
    checksum.update(content);
    checksum.finalize()
}

/// The product fits: 4,096 times 127 squared is below 2^27.
fn dot(one: &[i8], other: &[i8]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
}

fn length(vector: &[i8]) -> f32 {
    (dot(vector, vector) as f32).sqrt()
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!("the embedding model returned {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_keep_direction_in_eight_bits() {
        let vectors = TextVectors::new(&[vec![3.0, 4.0], vec![-30.0, 40.0], vec![0.0, 0.0]], 3).unwrap();
        let query = TextVectors::new(&[vec![0.6, 0.8]], 1).unwrap();
        let similarities = vectors.similarities(&query).remove(0);
        let expect = [1.0, 0.28, 0.0];
        let is_near = |(one, other): (&f32, f32)| (one - other).abs() < 0.01;
        assert!(similarities.iter().zip(expect).all(is_near), "{similarities:?}");
        let longer = TextVectors::new(&[vec![1.0; 3]], 1).unwrap();
        assert!(vectors.similarities(&longer).is_empty());
        assert!(TextVectors::default().similarities(&query).is_empty());
    }

    /// Vectors with numbers of a normal distribution, approximately, like those of embedding models.
    fn random_vectors(count: u64, dimensions: u64) -> Vec<Vec<f32>> {
        let mixed = |seed: u64| {
            let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40
        };
        let number = |seed: u64| {
            let uniform = (0..12).map(|part| mixed(seed * 12 + part) as f32 / (1 << 24) as f32);
            uniform.sum::<f32>() - 6.0
        };
        (0..count).map(|n| (0..dimensions).map(|at| number(n * dimensions + at)).collect()).collect()
    }

    #[test]
    fn vectors_in_eight_bits_rank_as_exact_ones() {
        let (count, dimensions) = (400, 384);
        let exact = random_vectors(count + 20, dimensions);
        let (texts, questions) = exact.split_at(400);
        let stored = TextVectors::new(texts, 400).unwrap();
        let cosine = |one: &[f32], other: &[f32]| {
            let dot = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
            dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
        };
        for question in questions {
            let expect: Vec<f32> = texts.iter().map(|text| cosine(text, question)).collect();
            let found = TextVectors::new(std::slice::from_ref(question), 1).unwrap();
            let found = stored.similarities(&found).remove(0);
            // The similarities of unrelated texts have a standard deviation of 0.05 here.
            let error = expect.iter().zip(&found).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
            assert!(error < 0.002, "{error}");
        }
    }

    #[test]
    fn vectors_encoded_are_decoded_unless_damaged_or_foreign() {
        let vectors = TextVectors::new(&[vec![3.0, -4.0, 0.5], vec![0.0; 3]], 2).unwrap();
        let (key, other) = ([7; 32], [8; 32]);
        let bytes = vectors.encode(&key);
        assert_eq!(bytes.len(), HEADER_LENGTH + 6 + CHECKSUM_LENGTH);
        assert_eq!(TextVectors::decode(&bytes, &key, 2), Some(vectors));
        assert_eq!(TextVectors::decode(&bytes, &other, 2), None, "of another key");
        assert_eq!(TextVectors::decode(&bytes, &key, 3), None, "of another number of texts");
        for length in 0..bytes.len() {
            assert_eq!(TextVectors::decode(&bytes[..length], &key, 2), None, "{length} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(TextVectors::decode(&damaged, &key, 2), None, "bit {bit}");
        }
        let mut newer = bytes[..bytes.len() - CHECKSUM_LENGTH].to_vec();
        newer[0] = FORMAT + 1;
        let sum = checksum(&key, &newer);
        newer.extend(sum.to_le_bytes());
        assert_eq!(TextVectors::decode(&newer, &key, 2), None, "of another format");
        assert_eq!(
            TextVectors::decode(&TextVectors::default().encode(&key), &key, 0),
            Some(TextVectors::default())
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
