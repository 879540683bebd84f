//! What is mended in the generated Kotlin: whatever an app's code throws or returns, the library must hear of it.
//!
//! As generated, an `Error` of the machine (no memory, a stack that is full) and a text that is no Unicode leave the
//! coroutine unheard: the call would wait for ever, and on Android the app would end.
//!
//! And an exception's message is its sentence, where it would be the whole record.

use anyhow::{Result, ensure};

/// What stands there, how often, and what shall.
const MENDED: &[(&str, usize, &str)] = &[
    (
        "        } catch(e: kotlin.Exception) {
            if (e is E) {
                handleError(
                    UniffiRustCallStatus.create(
                        UNIFFI_CALL_ERROR,
                        lowerError(e),
                    )
                )
            } else {
",
        1,
        "        } catch(e: kotlin.Throwable) {
            val told = if (e is E) runCatching { lowerError(e) }.getOrNull() else null
            if (told != null) {
                handleError(UniffiRustCallStatus.create(UNIFFI_CALL_ERROR, told))
            } else {
",
    ),
    ("catch(e: kotlin.Exception) {", 3, "catch(e: kotlin.Throwable) {"),
    (
        "        handleSuccess(callResult)
    }
    val handle",
        2,
        "        try {
            handleSuccess(callResult)
        } catch(e: kotlin.Throwable) {
            handleError(
                UniffiRustCallStatus.create(
                    UNIFFI_CALL_UNEXPECTED_ERROR,
                    FfiConverterString.lower(e.toString()),
                )
            )
        }
    }
    val handle",
    ),
    (
        "FfiConverterString.lower(e.toString())",
        4,
        "FfiConverterString.lower(e.toString().toByteArray().decodeToString())",
    ),
    ("get() = \"failure=${ `failure` }\"", 1, "get() = `failure`.`sentence`"),
];

/// The generated Kotlin, mended.
///
/// # Errors
/// When it is not what it was: then each place must be looked at again.
pub(crate) fn kotlin(generated: &str) -> Result<String> {
    let mut mended = generated.to_owned();
    for (from, times, to) in MENDED {
        let found = mended.matches(from).count();
        ensure!(
            found == *times,
            "the generator writes other Kotlin by now: {found} times, not {times}:\n{from}"
        );
        mended = mended.replace(from, to);
    }
    Ok(mended)
}
