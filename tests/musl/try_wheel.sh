#!/usr/bin/env bash
# try_wheel.sh WHEEL: compiles a CPython for musl, unless there is one, installs the wheel beside it, and uses it.
# It runs in the system of system.sh.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
wheel="$1"
python=/python/bin/python3
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

# compile_python: from the source package of the stable release, since a mirror may already have replaced the sources of
# the lists of testing.
compile_python() {
  sed 's/^deb /deb-src /; s/ forky / trixie /' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends make musl-tools xz-utils >/dev/null
  cd "$folder"
  apt-get -qq -o APT::Sandbox::User=root source --download-only python3.13
  tar --extract --strip-components 1 --file ./*.orig.tar.xz
  # gcc names the C library of Debian, whichever it compiles for.
  cat >cc <<'EOF'
#!/bin/sh
case " $* " in
  *" --print-multiarch "*) echo x86_64-linux-musl ;;
  *) exec musl-gcc "$@" ;;
esac
EOF
  chmod +x cc
  CC="$PWD/cc" ./configure --quiet --prefix=/python --without-ensurepip --disable-test-modules
  make --silent --jobs="$(nproc)" >make.txt 2>&1 || { tail make.txt >&2; exit 1; }
  make --silent install >install.txt 2>&1 || { tail install.txt >&2; exit 1; }
  touch /python/ready
}

[ -e /python/ready ] || (compile_python)

# The file's name says for which C library it is; pip installs it only for a Python that has this one.
pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform musllinux_1_2_x86_64 \
  --target "$folder/site" "$wheel"
PYTHONPATH="$folder/site" "$python" - docs/examples/lighthouse.vtt <<'EOF'
import pathlib
import sys

import verbatim_transcripts as vt

captions, link = pathlib.Path(sys.argv[1]).read_bytes(), "https://youtu.be/L1ghth0use1"
with vt.Transcripts(":memory:", suppliers=[]) as transcripts:
    transcripts.import_(link, captions, lang="en")
    text = transcripts.get(link).text
    assert "built by hand" in text, text
    try:
        transcripts.get("https://youtu.be/aaaaaaaaaaa", fetch=False)
    except vt.NotArchived as error:
        assert str(error).startswith("YouTube aaaaaaaaaaa: "), error
    else:
        raise AssertionError("a transcript that is not archived was found")
EOF
