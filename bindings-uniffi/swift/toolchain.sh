#!/usr/bin/env bash
# Swift on Linux, for the tests.
#
#   toolchain.sh install                 installs Swift if it is missing: the package swiftlang of Debian 13 or newer. On
#                                        an older Debian, whose C library is too old, the package and its dependencies
#                                        are unpacked below the target folder; the system is not changed.
#   toolchain.sh run FOLDER COMMAND...   runs a Swift command in a folder. NAME=VALUE may precede the command.
#
# Both need root if the system has no Swift: for apt-get, and for the mounts of the unpacked system.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
retry="$here/../../tests/retry.sh"
root="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/swift-toolchain"
# Debian's package installs no command `swift`, a name of another package. The commands are in this folder.
programs=/usr/libexec/swift/bin
# The compiler, and the C libraries for linking.
packages=(swiftlang libc6-dev libstdc++-14-dev)
# Debuggers, formatters and editor support, which the tests do not use: saves a gigabyte.
left_out=(lldb\* liblldb\* clangd docc sourcekit-lsp libsourcekitdInProc.so swift-format swift_static)

# unpack WORK: unpacks the packages of Debian 13 and their dependencies into WORK/system.
unpack() {
  local work="$1" mirror package exclude=(--exclude='./usr/share/doc' --exclude='./usr/share/locale')
  mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | sed -n 1p)"
  mkdir -p "$work"/{state/lists/partial,cache/archives/partial,parts,system}
  echo "deb $mirror trixie main" >"$work/sources.list"
  touch "$work/state/status"
  cat >"$work/apt.conf" <<CONF
Dir::State "$work/state";
Dir::State::status "$work/state/status";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "$work/parts";
Dir::Etc::preferencesparts "$work/parts";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
CONF
  export APT_CONFIG="$work/apt.conf"
  "$retry" apt-get update -q
  # Also a shell and `env`, which every Debian has installed.
  "$retry" apt-get install -qy --download-only "${packages[@]}" base-files dash coreutils
  for package in "${left_out[@]}"; do exclude+=(--exclude="$package"); done
  # base-files first: it contains the links from /lib to /usr/lib.
  for package in "$work"/cache/archives/base-files_*.deb "$work"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$work/system" "${exclude[@]}"
  done
}

case "${1:-}" in
  install)
    if command -v swiftc >/dev/null || [ -x $programs/swiftc ] || [ -d "$root" ]; then exit; fi
    "$retry" apt-get update -q
    if apt-cache show swiftlang >/dev/null 2>&1; then
      "$retry" apt-get install -qy --no-install-recommends "${packages[@]}"
      exit
    fi
    work="$root.new"
    rm -rf "$work"
    unpack "$work"
    mv "$work/system" "$root"
    rm -rf "$work"
    ;;
  run)
    folder="$(realpath "$2")"
    shift 2
    if command -v swiftc >/dev/null || [ -x $programs/swiftc ]; then
      cd "$folder"
      exec env PATH="$programs:$PATH" "$@"
    fi
    if [ ! -d "$root" ]; then
      echo "Swift is not installed: run ${BASH_SOURCE[0]} install" >&2
      exit 1
    fi
    # The mount namespace ends with the command.
    exec unshare --mount bash -euc '
      root="$1"; folder="$2"; programs="$3"; shift 3
      for path in /proc /dev /etc/ssl "$folder"; do
        mkdir -p "$root$path"
        mount --rbind "$path" "$root$path"
      done
      exec chroot "$root" /usr/bin/env -i -C "$folder" HOME=/tmp PATH="$programs:/usr/bin" "$@"
    ' run "$root" "$folder" "$programs" "$@"
    ;;
  *)
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
