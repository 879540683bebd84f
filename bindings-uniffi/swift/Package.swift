// swift-tools-version: 6.0
import PackageDescription

#if os(Linux)
// The header and its module map; the linker gets the location of the library as an option.
let library = Target.systemLibrary(name: "VerbatimFFI", path: "VerbatimFFI")
#else
// Static libraries for devices, simulators and Macs, with the header.
let library = Target.binaryTarget(name: "VerbatimFFI", path: "VerbatimFFI.xcframework")
#endif

let package = Package(
    name: "Verbatim",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "Verbatim", targets: ["Verbatim"])],
    targets: [
        library,
        .target(
            name: "Verbatim",
            dependencies: ["VerbatimFFI"],
            path: "Sources/Verbatim",
            linkerSettings: [
                .linkedFramework("Security", .when(platforms: [.iOS, .macOS])),
                .linkedFramework("SystemConfiguration", .when(platforms: [.iOS, .macOS])),
                .linkedLibrary("verbatim_phone", .when(platforms: [.linux])),
            ]
        ),
        .testTarget(name: "VerbatimTests", dependencies: ["Verbatim"], path: "Tests/VerbatimTests"),
    ],
    swiftLanguageModes: [.v5]
)
