//! Rows in a form that both databases share, and checksums over them.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Number,
    /// A boolean; a number in files.
    Flag,
    Text,
    Bytes,
}

/// A copied column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyColumn {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
}

/// Value of a column. A flag is 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum CopyValue {
    None,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a row, in the order of the copied columns.
pub(super) type CopyRow = Vec<CopyValue>;

impl CopyValue {
    /// The number; 0 if there is none.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            _ => 0,
        }
    }

    /// The text; empty if there is none.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }
}

/// A checksum of rows that ignores their order: databases order texts with U+0000 differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowChecksum {
    /// Number of rows.
    pub(super) rows: u64,
    digests: [u64; 4],
}

impl RowChecksum {
    /// Adds one row, or several that belong together.
    pub(super) fn add<'a>(&mut self, rows: u64, values: impl IntoIterator<Item = &'a CopyValue>) {
        let mut digest = Sha256::new();
        for value in values {
            let (kind, bytes): (u8, &[u8]) = match value {
                CopyValue::None => (0, &[]),
                CopyValue::Number(number) => (1, &number.to_be_bytes()),
                CopyValue::Text(text) => (2, text.as_bytes()),
                CopyValue::Bytes(bytes) => (3, bytes),
            };
            digest.update([kind]);
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        }
        let digest: [u8; 32] = digest.finalize().into();
        for (part, chunk) in self.digests.iter_mut().zip(digest.chunks_exact(8)) {
            let chunk = chunk.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            *part = part.wrapping_add(chunk);
        }
        self.rows += rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_depends_on_every_value_not_row_order() {
        let one = vec![CopyValue::Text("a".to_owned()), CopyValue::None, CopyValue::Bytes(vec![1, 2])];
        let two = vec![CopyValue::Text("b".to_owned()), CopyValue::Number(7), CopyValue::None];
        let sum = |rows: &[&CopyRow]| {
            let mut sum = RowChecksum::default();
            rows.iter().for_each(|row| sum.add(1, row.iter()));
            sum
        };
        assert_eq!(sum(&[&one, &two]), sum(&[&two, &one]));
        assert_ne!(sum(&[&one]), sum(&[&two]));
        assert_ne!(sum(&[&one]), sum(&[&one, &one]));
        for index in 0..3 {
            for other in [
                CopyValue::None,
                CopyValue::Number(0),
                CopyValue::Text(String::new()),
                CopyValue::Bytes(Vec::new()),
            ] {
                let mut changed = one.clone();
                if changed[index] != other {
                    changed[index] = other;
                    assert_ne!(sum(&[&changed]), sum(&[&one]), "{changed:?}");
                }
            }
        }
    }
}
