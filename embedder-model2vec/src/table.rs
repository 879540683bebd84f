//! The tensors of a model: a vector for each token.

use std::ops::Range;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use transcript_core::chat::EMBED_DIMENSIONS_MAX;

/// Names of the tensor with the vectors: in model2vec, and in models that have only this one.
const VECTORS: [&str; 2] = ["embeddings", "embedding.weight"];
/// Optional tensor with a weight for each token.
const WEIGHTS: &str = "weights";
/// Optional tensor with the row of each token, if tokens share vectors.
const MAPPING: &str = "mapping";
/// Maximum of tokens and of vectors.
const ROWS_MAX: usize = 1 << 22;

/// Vectors, weights and rows of the tokens of a model.
pub(crate) struct TokenTable {
    /// The whole file: the vectors are read from it, in their stored type.
    file: Vec<u8>,
    vectors: Range<usize>,
    kind: NumberKind,
    dimensions: usize,
    rows: usize,
    /// Weight of each token; empty: all are 1.
    weights: Vec<f32>,
    /// Row of each token; empty: its number.
    mapping: Vec<u32>,
}

/// Types of the numbers of a tensor, all in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberKind {
    Float16,
    BrainFloat16,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
}

impl NumberKind {
    fn new(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::F16 => Self::Float16,
            Dtype::BF16 => Self::BrainFloat16,
            Dtype::F32 => Self::Float32,
            Dtype::F64 => Self::Float64,
            Dtype::I8 => Self::Int8,
            Dtype::I32 => Self::Int32,
            Dtype::I64 => Self::Int64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Float16 | Self::BrainFloat16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Float64 | Self::Int64 => 8,
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Int8 | Self::Int32 | Self::Int64)
    }

    /// Whether a number of [`Self::bytes`] bytes is finite.
    fn is_finite(self, bytes: &[u8]) -> bool {
        match self {
            Self::Float16 | Self::BrainFloat16 => {
                let exponent = if self == Self::Float16 { 0x7c00 } else { 0x7f80 };
                bytes.try_into().is_ok_and(|bytes| u16::from_le_bytes(bytes) & exponent != exponent)
            }
            _ => self.read(bytes).is_finite(),
        }
    }

    /// Reads a number of [`Self::bytes`] bytes; 0 for bytes of another length.
    fn read(self, bytes: &[u8]) -> f64 {
        let narrow = || bytes.try_into().map_or(0, u16::from_le_bytes);
        match self {
            Self::Int8 => bytes.first().map_or(0.0, |byte| f64::from(byte.cast_signed())),
            Self::Float16 => f64::from(half_to_float(narrow())),
            Self::BrainFloat16 => f64::from(f32::from_bits(u32::from(narrow()) << 16)),
            Self::Float32 => bytes.try_into().map_or(0.0, |bytes| f64::from(f32::from_le_bytes(bytes))),
            Self::Float64 => bytes.try_into().map_or(0.0, f64::from_le_bytes),
            Self::Int32 => bytes.try_into().map_or(0.0, |bytes| f64::from(i32::from_le_bytes(bytes))),
            // Rows are below 2^22, where every integer is a float.
            Self::Int64 => bytes.try_into().map_or(0.0, |bytes| i64::from_le_bytes(bytes) as f64),
        }
    }
}

/// Converts a half-precision number of IEEE 754.
fn half_to_float(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1_024.0;
    match exponent {
        0 => sign * fraction * 2.0_f32.powi(-14),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    }
}

impl TokenTable {
    /// Reads the tensors of a file for a tokenizer with this many tokens.
    ///
    /// # Errors
    /// What is wrong with the file, without its path.
    pub(crate) fn new(file: Vec<u8>, tokens: usize) -> Result<Self, String> {
        let base = file.as_ptr() as usize;
        let tensors = SafeTensors::deserialize(&file).map_err(|error| format!("no safetensors: {error}"))?;
        let found = VECTORS.iter().find_map(|name| tensors.tensor(name).ok().map(|tensor| (*name, tensor)));
        let Some((name, tensor)) = found else {
            let names = tensors.names().iter().take(8).map(|name| format!("{name:?}")).collect::<Vec<_>>();
            return Err(format!("no tensor \"embeddings\", only {}", names.join(", ")));
        };
        let &[rows, dimensions] = tensor.shape() else {
            return Err(format!("tensor {name:?} has shape {:?}, not two dimensions", tensor.shape()));
        };
        if !(1..=ROWS_MAX).contains(&rows) || !(1..=EMBED_DIMENSIONS_MAX).contains(&dimensions) {
            return Err(format!(
                "tensor {name:?} has shape {:?}; allowed: up to {ROWS_MAX} vectors of up to {EMBED_DIMENSIONS_MAX} \
                 numbers",
                tensor.shape()
            ));
        }
        let kind = number_kind(name, &tensor)?;
        if !tensor.data().chunks_exact(kind.bytes()).all(|bytes| kind.is_finite(bytes)) {
            return Err(format!("tensor {name:?} has a number that is not finite"));
        }
        let from = tensor.data().as_ptr() as usize - base;
        let vectors = from..from + tensor.data().len();
        let weights = optional(&tensors, WEIGHTS)?;
        let mapping = optional(&tensors, MAPPING)?;
        if let Some((kind, _)) = &mapping
            && !kind.is_integer()
        {
            return Err(format!("tensor {MAPPING:?} has no integers"));
        }
        let weights: Vec<f32> = numbers(weights).map(|weight| weight as f32).collect();
        if !weights.iter().all(|weight| weight.is_finite()) {
            return Err(format!("tensor {WEIGHTS:?} has a number that is not finite"));
        }
        let is_row = |row: &f64| *row >= 0.0 && *row < rows as f64;
        let mapping: Vec<f64> = numbers(mapping).collect();
        if !mapping.iter().all(is_row) {
            return Err(format!("tensor {MAPPING:?} names vectors that tensor {name:?} does not have"));
        }
        let mapping: Vec<u32> = mapping.into_iter().map(|row| row as u32).collect();
        let mapped = if mapping.is_empty() { rows } else { mapping.len() };
        let weighted = if weights.is_empty() { mapped } else { weights.len() };
        if mapped < tokens || weighted < tokens {
            return Err(format!(
                "vectors for {} tokens, but the tokenizer has {tokens}: take both files from one model",
                mapped.min(weighted)
            ));
        }
        Ok(Self { file, vectors, kind, dimensions, rows, weights, mapping })
    }

    /// Number of values of a vector.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Number of vectors.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the weighted vector of a token; an unknown token adds nothing.
    pub(crate) fn add(&self, token: u32, sum: &mut [f32]) {
        let token = token as usize;
        let weight = if self.weights.is_empty() { Some(1.0) } else { self.weights.get(token).copied() };
        let row = if self.mapping.is_empty() {
            Some(token)
        } else {
            self.mapping.get(token).map(|row| *row as usize)
        };
        let (Some(weight), Some(row)) = (weight, row.filter(|row| *row < self.rows)) else { return };
        let length = self.dimensions * self.kind.bytes();
        let from = self.vectors.start + row * length;
        let Some(vector) = self.file.get(from..from + length) else { return };
        for (sum, bytes) in sum.iter_mut().zip(vector.chunks_exact(self.kind.bytes())) {
            *sum += weight * self.kind.read(bytes) as f32;
        }
    }
}

fn number_kind(name: &str, tensor: &TensorView<'_>) -> Result<NumberKind, String> {
    NumberKind::new(tensor.dtype())
        .ok_or_else(|| format!("tensor {name:?} has numbers of the unsupported type {:?}", tensor.dtype()))
}

/// Reads an optional tensor with one number for each token.
fn optional<'a>(tensors: &SafeTensors<'a>, name: &str) -> Result<Option<(NumberKind, &'a [u8])>, String> {
    let Ok(tensor) = tensors.tensor(name) else { return Ok(None) };
    match tensor.shape() {
        [count] if *count <= ROWS_MAX => Ok(Some((number_kind(name, &tensor)?, tensor.data()))),
        shape => Err(format!("tensor {name:?} has shape {shape:?}; allowed: one number for each token")),
    }
}

fn numbers(tensor: Option<(NumberKind, &[u8])>) -> impl Iterator<Item = f64> {
    let (kind, data) = tensor.unwrap_or((NumberKind::Int8, &[]));
    data.chunks_exact(kind.bytes()).map(move |bytes| kind.read(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_converted() {
        for (bits, expect) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
        ] {
            assert_eq!(half_to_float(bits), expect, "{bits:x}");
        }
        assert!(half_to_float(0x7c00).is_infinite() && half_to_float(0x7e00).is_nan());
        assert_eq!(NumberKind::BrainFloat16.read(&[0x80, 0x3f]), 1.0);
        assert_eq!(NumberKind::Int64.read(&(-3_i64).to_le_bytes()), -3.0);
        assert_eq!(NumberKind::Float32.read(&[1, 2]), 0.0);
    }
}
