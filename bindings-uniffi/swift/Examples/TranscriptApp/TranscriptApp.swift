import SwiftUI
import Verbatim

/// Shows the transcript of a link.
@main
struct TranscriptApp: App {
    @Environment(\.scenePhase) private var phase
    @StateObject private var store = TranscriptStore()

    var body: some Scene {
        WindowGroup {
            TranscriptView().environmentObject(store)
        }
        .onChange(of: phase) { phase in
            // The system can end an app that holds a file lock in the background.
            if phase == .background { store.pause() }
        }
    }
}

/// Transcripts in the app's folder.
@MainActor
final class TranscriptStore: ObservableObject {
    @Published private(set) var transcript: Transcript?
    @Published private(set) var stage: String?
    @Published private(set) var message: String?

    private let transcripts: Transcripts?
    private var task: Task<Void, Never>?

    init() {
        let folder = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        transcripts = folder.flatMap { try? Transcripts(in: $0.appendingPathComponent("Verbatim")) }
    }

    func fetch(_ link: String) {
        task?.cancel()
        transcript = nil
        message = nil
        guard let transcripts else { return message = "The app has no folder for transcripts." }
        task = Task {
            do {
                for try await update in transcripts.updates(of: link) {
                    switch update {
                    case .stage(let stage): self.stage = stage.name
                    case .done(let transcript): self.transcript = transcript
                    }
                }
                // A cancelled stream ends without `.done` and without an error.
                try Task.checkCancellation()
            } catch is CancellationError {
            } catch let error as VerbatimError {
                message = error.failure.message
            } catch {
                message = error.localizedDescription
            }
            stage = nil
        }
    }

    func pause() {
        guard let transcripts else { return }
        // `pause()` waits for running calls.
        task?.cancel()
        var token = UIBackgroundTaskIdentifier.invalid
        let end = {
            UIApplication.shared.endBackgroundTask(token)
            token = .invalid
        }
        token = UIApplication.shared.beginBackgroundTask(expirationHandler: end)
        Task {
            try? await transcripts.pause()
            end()
        }
    }
}

struct TranscriptView: View {
    @EnvironmentObject private var store: TranscriptStore
    @State private var link = ""

    private func timestamp(_ segment: Segment) -> String {
        let seconds = Int(segment.start)
        return String(format: "%d:%02d", seconds / 60, seconds % 60)
    }

    var body: some View {
        NavigationView {
            List {
                Section {
                    TextField("Link to a video", text: $link)
                        .textInputAutocapitalization(.never)
                        .onSubmit { store.fetch(link) }
                    if let stage = store.stage { ProgressView(stage) }
                    if let message = store.message { Text(message).foregroundColor(.red) }
                }
                if let transcript = store.transcript {
                    Section(transcript.title ?? transcript.videoId) {
                        ForEach(Array(transcript.segments.enumerated()), id: \.offset) { _, segment in
                            HStack(alignment: .top) {
                                Text(timestamp(segment)).monospacedDigit()
                                    .foregroundColor(.secondary)
                                Text(segment.text)
                            }
                        }
                    }
                }
            }
            .navigationTitle("Transcript")
        }
    }
}
