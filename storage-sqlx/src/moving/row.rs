//! Rows as both databases have them, and sums of them.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    /// Yes or no; a number in files.
    Flag,
    Text,
    Bytes,
}

/// A column that is carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What stands in a column. A flag is 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Value {
    None,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row: its values in the order of the carried columns.
pub(super) type Row = Vec<Value>;

impl Value {
    /// The number; 0 where there is none.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            _ => 0,
        }
    }

    /// The text; empty where there is none.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }
}

/// A sum of rows in which their order does not matter: databases order texts with U+0000 differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// How many there are.
    pub(super) rows: u64,
    digests: [u64; 4],
}

impl Sum {
    /// Adds one or several rows that belong together.
    pub(super) fn add<'a>(&mut self, rows: u64, values: impl IntoIterator<Item = &'a Value>) {
        let mut digest = Sha256::new();
        for value in values {
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::None => (0, &[]),
                Value::Number(number) => (1, &number.to_be_bytes()),
                Value::Text(text) => (2, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes),
            };
            digest.update([kind]);
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        }
        let digest: [u8; 32] = digest.finalize().into();
        for (part, eight) in self.digests.iter_mut().zip(digest.chunks_exact(8)) {
            let eight = eight.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            *part = part.wrapping_add(eight);
        }
        self.rows += rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_knows_every_value_and_no_order_of_rows() {
        let one = vec![Value::Text("a".to_owned()), Value::None, Value::Bytes(vec![1, 2])];
        let two = vec![Value::Text("b".to_owned()), Value::Number(7), Value::None];
        let sum = |rows: &[&Row]| {
            let mut sum = Sum::default();
            rows.iter().for_each(|row| sum.add(1, row.iter()));
            sum
        };
        assert_eq!(sum(&[&one, &two]), sum(&[&two, &one]));
        assert_ne!(sum(&[&one]), sum(&[&two]));
        assert_ne!(sum(&[&one]), sum(&[&one, &one]));
        for place in 0..3 {
            for other in [Value::None, Value::Number(0), Value::Text(String::new()), Value::Bytes(Vec::new())]
            {
                let mut changed = one.clone();
                if changed[place] != other {
                    changed[place] = other;
                    assert_ne!(sum(&[&changed]), sum(&[&one]), "{changed:?}");
                }
            }
        }
    }
}
