//! Rows in a form that both databases share, and checksums over them.

use sha2::{Digest, Sha256};

use crate::{
    error::{DbError, DbResult},
    sql::{Row, Value},
};

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

/// Value of a column.
pub(super) type CopyValue = Value<'static>;

/// The values of a row, in the order of the copied columns.
pub(super) type CopyRow = Vec<CopyValue>;

/// The values of a row that was read.
pub(super) fn read(row: Row, columns: &[CopyColumn]) -> DbResult<CopyRow> {
    let value = |(value, column): (CopyValue, &CopyColumn)| match (column.kind, value) {
        (ColumnKind::Flag, Value::Number(flag @ (0 | 1))) => Ok(Value::Flag(flag == 1)),
        (_, value @ Value::Null)
        | (ColumnKind::Number, value @ Value::Number(_))
        | (ColumnKind::Flag, value @ Value::Flag(_))
        | (ColumnKind::Text, value @ Value::Text(_))
        | (ColumnKind::Bytes, value @ Value::Bytes(_)) => Ok(value),
        _ => Err(DbError::Unreadable),
    };
    row.into_values().into_iter().zip(columns).map(value).collect()
}

/// The number at an index; 0 if there is none.
pub(super) fn number_at(row: &[CopyValue], index: usize) -> i64 {
    match row.get(index) {
        Some(Value::Number(number)) => *number,
        _ => 0,
    }
}

/// The text at an index; empty if there is none.
pub(super) fn text_at(row: &[CopyValue], index: usize) -> &str {
    match row.get(index) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// Replaces the value at an index.
pub(super) fn set(row: &mut CopyRow, index: usize, new: impl Into<CopyValue>) {
    if let Some(value) = row.get_mut(index) {
        *value = new.into();
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
                Value::Null => (0, &[]),
                Value::Number(number) => (1, &number.to_be_bytes()),
                Value::Text(text) => (2, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes),
                Value::Flag(flag) => (4, &[u8::from(*flag)]),
                // No row has a list; see `read`.
                Value::Texts(_) | Value::Numbers(_) => (5, &[]),
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
        let one = vec![Value::Text("a".into()), Value::Null, Value::Bytes(vec![1, 2].into())];
        let two = vec![Value::Text("b".into()), Value::Number(7), Value::Null];
        let sum = |rows: &[&CopyRow]| {
            let mut sum = RowChecksum::default();
            rows.iter().for_each(|row| sum.add(1, row.iter()));
            sum
        };
        assert_eq!(sum(&[&one, &two]), sum(&[&two, &one]));
        assert_ne!(sum(&[&one]), sum(&[&two]));
        assert_ne!(sum(&[&one]), sum(&[&one, &one]));
        for index in 0..3 {
            for other in
                [Value::Null, Value::Number(0), Value::Text("".into()), Value::Bytes(Vec::new().into())]
            {
                let mut changed = one.clone();
                if changed[index] != other {
                    changed[index] = other;
                    assert_ne!(sum(&[&changed]), sum(&[&one]), "{changed:?}");
                }
            }
        }
    }
}
