#!/usr/bin/env bash
# try_wheel.sh WHEEL: installs the wheel beside a CPython of its platform, and uses it without a network.
#
# It runs in the system of system.sh. Programs for aarch64 run in qemu, in the file system /aarch64, which wheels.sh
# creates. Debian has no CPython for musl: the first call compiles one.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
wheel="$(realpath "$1")"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# As manylinux2014_aarch64 or musllinux_1_2_x86_64.
platform="${wheel##*-}" platform="${platform%%.*}"
root="" emulator=()
if [[ "$platform" = *_aarch64 ]]; then root=/aarch64 emulator=(/qemu); fi
folder="$(mktemp -d)" trial="$(mktemp -d --tmpdir="$root/tmp")"
trap 'rm -rf "$folder" "$trial"' EXIT

fail() { echo "musl: $*" >&2; exit 1; }

# compile_python x86_64|aarch64: from the source package of the stable release, since a mirror may already have replaced
# the sources of the lists of testing. It is installed in /python of its file system.
compile_python() {
  local architecture="$1" root="" options=()
  if [ "$architecture" = aarch64 ]; then
    # The build runs a Python of the same version.
    [ -e /python/ready ] || (compile_python x86_64)
    root=/aarch64
    options=(--build=x86_64-linux-gnu --host=aarch64-linux-musl --with-build-python=/python/bin/python3
      ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no ac_cv_buggy_getaddrinfo=no)
  fi
  sed 's/^deb /deb-src /; s/ forky / trixie /' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends make musl xz-utils >/dev/null
  mkdir "$folder/$architecture"
  cd "$folder/$architecture"
  apt-get -qq -o APT::Sandbox::User=root source --download-only python3.13
  tar --extract --strip-components 1 --file ./*.orig.tar.xz
  local zig=(/tools/lib/python3*/site-packages/ziglang/zig)
  # configure expects a name without spaces. zig rejects the build date, which Python has.
  printf '#!/bin/sh\nexec %s cc -target %s-linux-musl -dynamic -Wno-date-time "$@"\n' "${zig[0]}" "$architecture" >cc
  chmod +x cc
  {
    CC="$PWD/cc" AR="${zig[0]} ar" ./configure --quiet --prefix=/python --without-ensurepip --disable-test-modules \
      "${options[@]}" && make --silent --jobs="$(nproc)" && make --silent install DESTDIR="$root"
  } >build.txt 2>&1 || { tail build.txt >&2; exit 1; }
  touch "$root/python/ready"
}

# run ARGUMENT...: the Python, without a network. `inside` is the folder of the trial as this Python sees it.
inside="${trial#"$root"}"
run() {
  unshare --net env -i PYTHONPATH="$inside/site" PYTHONDONTWRITEBYTECODE=1 \
    /usr/sbin/chroot "${root:-/}" "${emulator[@]}" "$python" "$@"
}

options=(--quiet --disable-pip-version-check --root-user-action=ignore --no-deps)
if [[ "$platform" = musllinux_* ]]; then
  [ -e "$root/python/ready" ] || (compile_python "${platform#musllinux_1_2_}")
  python=/python/bin/python3
  # This Python has no zlib, which pip needs. pip of another Python takes the platform from the file's name.
  pip install "${options[@]}" --only-binary=:all: --platform "$platform" --target "$trial/site" "$wheel"
else
  python=/usr/bin/python3
  pip_of_debian="$(cd "${root:-/}" && echo usr/share/python-wheels/pip-*.whl)"
  cp "$wheel" "$trial"
  run "/$pip_of_debian/pip" install "${options[@]}" --no-index --target "$inside/site" "$inside/${wheel##*/}"
fi

cp docs/examples/lighthouse.vtt "$trial"
version="$(run - "$inside" <<'EOF'
import importlib.metadata
import pathlib
import platform
import sys

import verbatim_transcripts as vt

folder, link, other = pathlib.Path(sys.argv[1]), "https://youtu.be/L1ghth0use1", "https://youtu.be/aaaaaaaaaaa"
assert vt.__version__ == importlib.metadata.version("verbatim-transcripts"), vt.__version__


def error_of(**options):
    try:
        transcripts.get(other, **options)
    except vt.TranscriptUnavailable as error:
        return error
    raise AssertionError("a transcript that is not archived was found")


with vt.Transcripts(folder / "archive.db") as transcripts:
    transcripts.import_(link, folder / "lighthouse.vtt", lang="en", title="The lighthouse")
    transcript = transcripts.get(link)
    assert "built by hand" in transcript.text, transcript.text
    transcript.save(folder / "lighthouse.srt")
    [hit] = transcripts.search("BUILT by hand")
    assert hit.start == 1.0, hit
    [video] = transcripts.search_videos('"nine winters"')
    assert video.transcript.title == "The lighthouse", video
    error = error_of(fetch=False)
    assert isinstance(error, vt.NotArchived) and str(error).startswith("YouTube aaaaaaaaaaa: "), error
    error = error_of(timeout=60)
    assert isinstance(error, vt.FetchFailed) and "YouTube could not be reached" in str(error), error
print(vt.__version__, platform.machine(), platform.python_version(), *platform.libc_ver())
EOF
)"
verbatim() { run -m verbatim_transcripts "$@"; }
archived() { verbatim --archive "$inside/archive.db" --no-fetch "$@"; }
[ "$(verbatim --version)" = "${version%% *}" ] || fail "$(verbatim --version) is not ${version%% *}"
archived --format srt https://youtu.be/L1ghth0use1 | cmp - "$trial/lighthouse.srt"
status=0
error="$(archived https://youtu.be/aaaaaaaaaaa 2>&1)" || status=$?
if [ "$status" -ne 3 ] || [[ "$error" != https://youtu.be/aaaaaaaaaaa:* ]]; then fail "status $status: $error"; fi
echo "musl: ${wheel##*/} works: $version"
