//! Compares both sides: every value of every row, except numbers that only order the rows.

use transcript_core::Result;

use super::{
    copier::{CopyUnit, key},
    row::RowChecksum,
    side::{CopySide, column_index},
    table::LEDGER_ENTRIES,
    videos::VideoCopier,
};
use crate::sql::Value;

/// The checksum of a table, or of all videos. `on_rows` receives the number of further rows read.
pub(super) async fn sum(
    side: &mut dyn CopySide,
    unit: &CopyUnit,
    on_rows: &mut (dyn FnMut(u64) + Send),
) -> Result<RowChecksum> {
    let mut sum = RowChecksum::default();
    match unit {
        CopyUnit::Videos(video_columns) => {
            let mut after = None;
            while let Some(videos) = VideoCopier::next(side, video_columns, after.as_deref()).await? {
                videos.add_to_checksum(video_columns, &mut sum)?;
                on_rows(videos.count());
                after = videos.names.last().cloned();
            }
        }
        CopyUnit::Table(table, columns) => {
            let number = table.number.map(|number| column_index(columns, number)).transpose()?;
            let wallet =
                if table.name == LEDGER_ENTRIES { Some(column_index(columns, "wallet")?) } else { None };
            let (mut after, mut within) = (None, (Value::Null, 0_i64));
            loop {
                let mut rows = side.page(table, columns, after.as_deref()).await?;
                let Some(last) = rows.last() else { break };
                after = Some(key(table, columns, last)?);
                on_rows(rows.len() as u64);
                for row in &mut rows {
                    // Entries are compared in their wallet's order, by their index within the wallet.
                    let value = match wallet.and_then(|wallet| row.get(wallet)) {
                        Some(wallet) if within.0 == *wallet => {
                            within.1 += 1;
                            within.1.into()
                        }
                        Some(wallet) => {
                            within = (wallet.clone(), 0);
                            Value::Number(0)
                        }
                        None => Value::Null,
                    };
                    if let Some(number) = number.and_then(|number| row.get_mut(number)) {
                        *number = value;
                    }
                    sum.add(1, row.iter());
                }
            }
        }
    }
    Ok(sum)
}
