//! The units and signs with which a text has its numbers.

use std::collections::HashMap;

use super::Piece;

/// The units and signs of each number of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(HashMap<String, NumberMarks>);

#[derive(Clone, Debug, Default)]
struct NumberMarks {
    units: Vec<&'static str>,
    /// Whether the text has the number without a unit.
    is_bare: bool,
    is_negative: bool,
}

impl Marks {
    /// Adds a number.
    pub(super) fn add(&mut self, form: &str, unit: Option<&'static str>, is_negative: bool) {
        let marks = self.0.entry(form.to_owned()).or_default();
        marks.is_bare |= unit.is_none();
        marks.units.extend(unit.filter(|unit| !marks.units.contains(unit)));
        marks.is_negative |= is_negative;
    }

    /// Marks a number as negative.
    pub(super) fn add_sign(&mut self, piece: &Piece) {
        self.0.entry(piece.form.clone()).or_default().is_negative = true;
    }

    /// Whether texts do not have a number with other units only, and have it negative if it is.
    pub(super) fn agree_on(
        texts: &[&Self],
        form: &str,
        unit: Option<&'static str>,
        is_negative: bool,
    ) -> bool {
        let marks = || texts.iter().filter_map(|text| text.0.get(form));
        let has_unit = |unit| marks().any(|marks| marks.is_bare || marks.units.contains(&unit));
        unit.is_none_or(|unit| marks().next().is_none() || has_unit(unit))
            && (!is_negative || marks().any(|marks| marks.is_negative))
    }
}
