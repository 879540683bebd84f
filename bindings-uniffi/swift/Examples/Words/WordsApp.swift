import SwiftUI
import Verbatim

/// A link in, its words on the screen; a tap on a segment opens the video there.
@main
struct WordsApp: App {
    @Environment(\.scenePhase) private var phase
    @StateObject private var shelf = Shelf()

    var body: some Scene {
        WindowGroup {
            WordsView().environmentObject(shelf)
        }
        .onChange(of: phase) { phase in
            // A file that stays locked in the background may end the app.
            if phase == .background { shelf.rest() }
        }
    }
}

/// The transcripts, in the app's own folder.
@MainActor
final class Shelf: ObservableObject {
    @Published private(set) var transcript: Transcript?
    @Published private(set) var stage: String?
    @Published private(set) var message: String?

    private let transcripts: Transcripts?
    private var work: Task<Void, Never>?

    init() {
        let folder = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        transcripts = folder.flatMap { try? Transcripts(in: $0.appendingPathComponent("Verbatim")) }
    }

    func fetch(_ link: String) {
        work?.cancel()
        transcript = nil
        message = nil
        guard let transcripts else { return message = "There is no folder for transcripts." }
        work = Task {
            do {
                for try await progress in transcripts.progress(of: link) {
                    switch progress {
                    case .underway(let stage): self.stage = stage.name
                    case .done(let transcript): self.transcript = transcript
                    }
                }
            } catch is CancellationError {
            } catch let error as VerbatimError {
                message = error.failure.sentence
            } catch {
                message = error.localizedDescription
            }
            stage = nil
        }
    }

    func rest() {
        guard let transcripts else { return }
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

struct WordsView: View {
    @EnvironmentObject private var shelf: Shelf
    @State private var link = ""

    private func moment(_ segment: Segment) -> String {
        let seconds = Int(segment.start)
        return String(format: "%d:%02d", seconds / 60, seconds % 60)
    }

    var body: some View {
        NavigationView {
            List {
                Section {
                    TextField("Link to a video", text: $link)
                        .textInputAutocapitalization(.never)
                        .onSubmit { shelf.fetch(link) }
                    if let stage = shelf.stage { ProgressView(stage) }
                    if let message = shelf.message { Text(message).foregroundColor(.red) }
                }
                if let transcript = shelf.transcript {
                    Section(transcript.title ?? transcript.videoId) {
                        ForEach(Array(transcript.segments.enumerated()), id: \.offset) { _, segment in
                            HStack(alignment: .top) {
                                Text(moment(segment)).monospacedDigit()
                                    .foregroundColor(.secondary)
                                Text(segment.text)
                            }
                        }
                    }
                }
            }
            .navigationTitle("Words")
        }
    }
}
