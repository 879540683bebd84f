//! Patches the generated Kotlin to pass on everything that an app's code throws or returns.
//!
//! Without the patches, a `kotlin.Error` (no memory, a stack overflow) and a text that is not valid Unicode end the
//! coroutine without a result: the call would wait without end, and on Android the app would crash.
//!
//! A last patch sets the message of each exception to its sentence instead of all its fields.

use anyhow::{Result, ensure};

/// Generated text, its number of occurrences, and its replacement.
const PATCHES: &[(&str, usize, &str)] = &[
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
            val lowered = if (e is E) runCatching { lowerError(e) }.getOrNull() else null
            if (lowered != null) {
                handleError(UniffiRustCallStatus.create(UNIFFI_CALL_ERROR, lowered))
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
    ("get() = \"failure=${ `failure` }\"", 1, "get() = `failure`.`message`"),
    (
        "get() = \"reason=${ `reason` }, detail=${ `detail` }, retryAfter=${ `retryAfter` }\"",
        1,
        "get() = `detail`",
    ),
];

/// Applies all patches to the generated Kotlin.
///
/// # Errors
/// If a new version of the generator writes other text: then check each patch again.
pub(crate) fn patch(generated: &str) -> Result<String> {
    let mut patched = generated.to_owned();
    for (from, times, to) in PATCHES {
        let found = patched.matches(from).count();
        ensure!(
            found == *times,
            "generated Kotlin has changed: {found} occurrences instead of {times}:\n{from}"
        );
        patched = patched.replace(from, to);
    }
    Ok(patched)
}
