package dev.verbatim

import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** What failed, and how. */
public val VerbatimException.failure: Failure
    get() = when (this) {
        is VerbatimException.Failed -> failure
    }

/** What kind of failure it is. */
public val VerbatimException.kind: FailureKind
    get() = failure.kind

/** One sentence for people. */
public val VerbatimException.sentence: String
    get() = failure.sentence

/** What a store or a model of the app's throws. Anything else that it throws is told as [FailureKind.UNEXPECTED]. */
public fun failed(kind: FailureKind, sentence: String): VerbatimException =
    VerbatimException.Failed(Failure(kind, sentence))

/** What a supplier of the app's throws when it has no transcript. */
public fun noTranscript(reason: SupplyReason, sentence: String, retryAfter: Duration? = null): SupplyFailure =
    SupplyFailure.Failed(reason, sentence, retryAfter?.toJavaDuration())
