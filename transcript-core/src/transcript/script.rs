//! The script of a letter.

use icu_properties::CodePointMapData;
pub(crate) use icu_properties::props::Script;

/// The script that Unicode assigns to a character.
pub(crate) fn char_script(c: char) -> Script {
    CodePointMapData::<Script>::new().get(c)
}
