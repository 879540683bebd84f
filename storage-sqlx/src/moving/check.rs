//! Whether both sides have the same: every value of every row, but the numbers that only put rows in an order.

use transcript_core::Result;

use super::{
    row::{Sum, Value},
    side::{Side, place},
    table::LEDGER_ENTRIES,
    videos::Videos,
    work::{Stuff, key},
};

/// The sum of a table, or of all videos. `told` hears how many more rows were read.
pub(super) async fn sum(
    side: &mut dyn Side,
    stuff: &Stuff,
    told: &mut (dyn FnMut(u64) + Send),
) -> Result<Sum> {
    let mut sum = Sum::default();
    match stuff {
        Stuff::Videos(shapes) => {
            let mut after = None;
            while let Some(videos) = Videos::next(side, shapes, after.as_deref()).await? {
                videos.sum(shapes, &mut sum)?;
                told(videos.count());
                after = videos.names.last().cloned();
            }
        }
        Stuff::Table(table, columns) => {
            let number = table.number.map(|number| place(columns, number)).transpose()?;
            let wallet = if table.name == LEDGER_ENTRIES { Some(place(columns, "wallet")?) } else { None };
            let (mut after, mut within) = (None, (Value::None, 0));
            loop {
                let mut rows = side.page(table, columns, after.as_deref()).await?;
                let Some(last) = rows.last() else { break };
                after = Some(key(table, columns, last)?);
                told(rows.len() as u64);
                for row in &mut rows {
                    // Entries are in their wallet's order, which their place tells.
                    let value = match wallet.and_then(|wallet| row.get(wallet)) {
                        Some(wallet) if within.0 == *wallet => {
                            within.1 += 1;
                            Value::Number(within.1)
                        }
                        Some(wallet) => {
                            within = (wallet.clone(), 0);
                            Value::Number(0)
                        }
                        None => Value::None,
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
