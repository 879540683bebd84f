package dev.verbatim

import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** Details of the failure. */
public val VerbatimException.failure: Failure
    get() = when (this) {
        is VerbatimException.Failed -> failure
    }

/** Kind of the failure. */
public val VerbatimException.kind: FailureKind
    get() = failure.kind

/**
 * The error for a store or model of the app. Any other exception becomes [FailureKind.UNEXPECTED].
 *
 * [FailureKind.UNAVAILABLE], [FailureKind.NOT_FOUND], [FailureKind.CONFLICT], [FailureKind.CORRUPT],
 * [FailureKind.UNSUPPORTED] and [FailureKind.INVALID_INPUT] stay. [FailureKind.TIMED_OUT], [FailureKind.RATE_LIMITED],
 * [FailureKind.FETCH_FAILED] and [FailureKind.NOT_CONFIGURED] become [FailureKind.UNAVAILABLE]. Every other kind becomes
 * [FailureKind.UNEXPECTED].
 */
public fun verbatimError(kind: FailureKind, message: String): VerbatimException =
    VerbatimException.Failed(Failure(kind, message))

/** The error for a supplier of the app that has no transcript. */
public fun supplyError(reason: SupplyReason, message: String, retryAfter: Duration? = null): SupplyFailure =
    SupplyFailure.Failed(reason, message, retryAfter?.toJavaDuration())
