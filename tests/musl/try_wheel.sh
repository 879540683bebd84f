#!/usr/bin/env bash
# try_wheel.sh WHEEL: compiles a CPython for musl, unless there is one, installs the wheel beside it, and uses it. It runs
# in the system of system.sh.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
python=/python/bin/python3

if [ ! -x "$python" ]; then
  # Of the stable release: a mirror may already have replaced the sources of the lists of testing.
  sed 's/^deb /deb-src /; s/ forky / trixie /' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends make musl-tools xz-utils >/dev/null
  source="$(mktemp -d)"
  cd "$source"
  apt-get -qq -o APT::Sandbox::User=root source --download-only python3.13
  tar --extract --strip-components 1 --file ./*.orig.tar.xz
  # gcc names the C library of Debian, whichever it compiles for.
  printf '#!/bin/sh\ncase " $* " in *" --print-multiarch "*) echo x86_64-linux-musl ;; *) exec musl-gcc "$@" ;; esac\n' >cc
  chmod +x cc
  CC="$PWD/cc" ./configure --quiet --prefix=/python --without-ensurepip --disable-test-modules
  make --silent --jobs="$(nproc)" >make.txt 2>&1 || { tail make.txt >&2; exit 1; }
  make --silent install >install.txt 2>&1 || { tail install.txt >&2; exit 1; }
  cd /source
  rm -rf "$source"
fi

site="$(mktemp -d)"
trap 'rm -rf "$site"' EXIT
# The file's name says for which C library it is; pip installs it only for a Python that has this one.
pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform musllinux_1_2_x86_64 \
  --target "$site" "$1"
PYTHONPATH="$site" "$python" - docs/examples/lighthouse.vtt <<'EOF'
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
        assert error.retry_after is None
EOF
