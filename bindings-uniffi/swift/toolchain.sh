#!/usr/bin/env bash
# Swift on Linux, for the tests.
#
#   toolchain.sh install                 gets it where it is missing: the package swiftlang of Debian 13 or newer. On an
#                                        older Debian what that package takes is unpacked below the target folder, for it
#                                        would not go with the system's C library; the system stays as it is.
#   toolchain.sh run FOLDER COMMAND...   runs a command of it in a folder. NAME=VALUE may come before the command.
#
# Both want root where the system has no Swift: apt-get does, and so do the mounts of a folder that is a system.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/swift-toolchain"
# Debian has no command `swift`, for another package has one; its other commands are here.
programs=/usr/libexec/swift/bin
# What compiles, and what the compiler runs; linking takes a C compiler and its libraries.
packages=(swiftlang libc6-dev libstdc++-14-dev)
# Nobody debugs, formats or edits in the tests: a gigabyte less.
left_out=(lldb\* liblldb\* clangd docc sourcekit-lsp libsourcekitdInProc.so swift-format swift_static)

# unpack WORK: the packages of Debian 13, and whatever they want, into the folder that becomes the system.
unpack() {
  local work="$1" mirror package exclude=(--exclude='./usr/share/doc' --exclude='./usr/share/locale')
  mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)"
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
  apt-get update -q
  # Beside them what every Debian has: a shell, and env.
  apt-get install -qy --download-only "${packages[@]}" base-files dash coreutils
  for package in "${left_out[@]}"; do exclude+=(--exclude="$package"); done
  # The links from /lib to /usr/lib come first.
  for package in "$work"/cache/archives/base-files_*.deb "$work"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$work/system" "${exclude[@]}"
  done
}

case "${1:-}" in
  install)
    if command -v swiftc >/dev/null || [ -x $programs/swiftc ] || [ -d "$root" ]; then exit; fi
    apt-get update -q
    if apt-cache show swiftlang >/dev/null 2>&1; then
      apt-get install -qy --no-install-recommends "${packages[@]}"
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
      echo "there is no Swift here: ${BASH_SOURCE[0]} install" >&2
      exit 1
    fi
    # The mounts end with the command.
    exec unshare --mount bash -euc '
      root="$1"; folder="$2"; programs="$3"; shift 3
      for place in /proc /dev /etc/ssl "$folder"; do
        mkdir -p "$root$place"
        mount --rbind "$place" "$root$place"
      done
      exec chroot "$root" /usr/bin/env -i -C "$folder" HOME=/tmp PATH="$programs:/usr/bin" "$@"
    ' run "$root" "$folder" "$programs" "$@"
    ;;
  *)
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
