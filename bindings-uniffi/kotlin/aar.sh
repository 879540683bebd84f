#!/usr/bin/env bash
# Packs an AAR and checks its content, without Android's compilers: stub libraries with one function for all four ABIs,
# and the compiled classes. Libraries that no device can load must be rejected.
# Arguments: the packager program, the folder of the classes, and a work folder.
set -euo pipefail
packager="$(realpath "$1")"; compiled="$(realpath "$2")"; work="$(realpath -m "$3")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
rm -rf "$work"
mkdir -p "$work/jni"
cd "$work"

# The Rust toolchain contains a linker for every architecture.
host="$(rustc -vV | sed -n 's/^host: //p')"
linker="$(rustc --print sysroot)/lib/rustlib/$host/bin/gcc-ld/ld.lld"
declare -A machines=(
  [arm64-v8a]=aarch64-linux-android24 [armeabi-v7a]=armv7-linux-androideabi24
  [x86_64]=x86_64-linux-android24 [x86]=i686-linux-android24
)
echo 'int verbatim(void) { return 24; }' >stand-in.c

library() { # library ABI PAGE [MACHINE]: compiles a stub with segments aligned for this page size.
  mkdir -p "jni/$1"
  clang --target="${3:-${machines[$1]}}" --ld-path="$linker" -nostdlib -shared -fPIC -Wl,-z,max-page-size="$2" \
    -o "jni/$1/libverbatim_phone.so" stand-in.c
}
expect_rejected() { # expect_rejected MESSAGE: packing the current libraries fails with this message.
  if output="$("$packager" aar packed jni classes.jar 2>&1)"; then
    echo "packing succeeded, expected an error: $1" >&2
    exit 1
  fi
  if [ -e packed/verbatim.aar ] || ! grep -qF -- "$1" <<<"$output"; then
    echo "expected '$1' and no archive, got: $output" >&2
    exit 1
  fi
}

jar --create --file classes.jar -C "$compiled" dev
for abi in arm64-v8a x86_64; do library "$abi" 16384; done
# Only 64-bit devices have pages larger than 4 KB.
for abi in armeabi-v7a x86; do library "$abi" 4096; done

library arm64-v8a 4096
expect_rejected "aligned for pages of 4096 bytes"
library arm64-v8a 16384 x86_64-linux-android24
expect_rejected "for another machine than its folder says"
rm jni/arm64-v8a/libverbatim_phone.so
expect_rejected "jni/arm64-v8a/libverbatim_phone.so cannot be packed"
echo "no library" >jni/arm64-v8a/libverbatim_phone.so
expect_rejected "jni/arm64-v8a/libverbatim_phone.so cannot be packed"
library arm64-v8a 16384

echo "licences of libraries" >notices
THIRD_PARTY_LICENSES=notices "$packager" aar packed jni classes.jar
mkdir aar
(cd aar && jar --extract --file ../packed/verbatim.aar)
expected="AndroidManifest.xml META-INF/dev.verbatim/LICENSE-APACHE META-INF/dev.verbatim/LICENSE-MIT"
expected+=" META-INF/dev.verbatim/THIRD-PARTY-LICENSES R.txt classes.jar"
expected+=" jni/arm64-v8a/libverbatim_phone.so jni/armeabi-v7a/libverbatim_phone.so"
expected+=" jni/x86/libverbatim_phone.so jni/x86_64/libverbatim_phone.so proguard.txt"
found="$(cd aar && find . -type f | sed 's|^\./||' | LC_ALL=C sort | xargs)"
[ "$found" = "$expected" ] || { echo "unexpected files in the AAR: $found" >&2; exit 1; }
cmp classes.jar aar/classes.jar
cmp notices aar/META-INF/dev.verbatim/THIRD-PARTY-LICENSES
cmp "$here/consumer-rules.pro" aar/proguard.txt
for abi in "${!machines[@]}"; do cmp "jni/$abi/libverbatim_phone.so" "aar/jni/$abi/libverbatim_phone.so"; done
python3 - aar/AndroidManifest.xml <<'CHECK'
import sys
from xml.etree import ElementTree

root = ElementTree.parse(sys.argv[1]).getroot()
name = "{http://schemas.android.com/apk/res/android}"
elements = [(child.tag, *child.attrib.items()) for child in root]
assert root.get("package") == "dev.verbatim", root.attrib
assert elements == [
    ("uses-sdk", (name + "minSdkVersion", "24")),
    ("uses-permission", (name + "name", "android.permission.INTERNET")),
], elements
CHECK
