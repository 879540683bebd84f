// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "Verbatim",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "Verbatim", targets: ["Verbatim"])],
    targets: [
        // Static libraries for devices, simulators and Macs, with the header that the sources call.
        .binaryTarget(name: "VerbatimFFI", path: "VerbatimFFI.xcframework"),
        .target(
            name: "Verbatim",
            dependencies: ["VerbatimFFI"],
            path: "Sources/Verbatim",
            linkerSettings: [.linkedFramework("Security"), .linkedFramework("SystemConfiguration")]
        ),
        .testTarget(name: "VerbatimTests", dependencies: ["Verbatim"], path: "Tests/VerbatimTests"),
    ],
    swiftLanguageModes: [.v5]
)
