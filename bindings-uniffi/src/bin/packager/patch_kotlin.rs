//! Patches the generated Kotlin to pass on everything that an app's code throws or returns.
//!
//! Without the patches, a `kotlin.Error` (no memory, a stack overflow), a text that is not valid Unicode, and an
//! exception that has no text end the coroutine without a result: the call would wait without end, and on Android the
//! app would crash.
//!
//! Further patches check that an argument is not closed, which the generator does for the receiver only; run callbacks
//! on the threads for blocking work; and set the message of an exception to one sentence.

use anyhow::{Result, ensure};

/// Generated text, its number of occurrences, and its replacement.
///
/// The number 0 means one for each object and callback interface, which depend on the features of the build.
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
        "FfiConverterString.lower(
                        (runCatching { e.toString() }.getOrNull() ?: \"an exception without a text\")
                            .toByteArray().decodeToString(),
                    )",
    ),
    // The first line of the stack trace, as of a suspending callback.
    (
        "try { e.stackTraceToString() } catch(_: Throwable) { \"\" }",
        2,
        "(runCatching { e.toString() }.getOrNull() ?: \"an exception without a text\")
            .toByteArray().decodeToString()",
    ),
    // A clone of a freed handle is a use after free: count the argument as in use, or throw.
    ("return value.uniffiCloneHandle()", 0, "return value.callWithHandle { it }"),
    // The default dispatcher has one thread per core: a few callbacks that block would stop all others.
    (
        "GlobalScope.launch coroutineBlock@",
        2,
        "GlobalScope.launch(kotlinx.coroutines.Dispatchers.IO) coroutineBlock@",
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
        let is_expected = if *times == 0 { found > 0 } else { found == *times };
        ensure!(is_expected, "generated Kotlin has changed: {found} occurrences instead of {times}:\n{from}");
        patched = patched.replace(from, to);
    }
    Ok(patched)
}
