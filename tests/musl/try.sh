#!/usr/bin/env bash
# try.sh PROGRAM [EMULATOR]: checks that the program is static, and uses it in an empty file system: it imports a
# transcript and serves it. EMULATOR is a static qemu for the program of another architecture. Only a program with
# -small- in its name may lack default features. Requires root.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
program="$(realpath "$1")"
emulator="${2:+$(realpath "$2")}"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
server=""
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

fail() { echo "musl: $*" >&2; exit 1; }
if readelf --wide --program-headers --dynamic "$program" | grep -E 'INTERP|NEEDED'; then fail "$program is not static"; fi

root="$folder/root"
mkdir -p "$root"/{data,tmp,etc/ssl/certs}
cp "$program" "$root/verbatim"
cp docs/examples/lighthouse.vtt "$root/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
run=(env -i VERBATIM_DATA=/data /usr/sbin/chroot "$root")
if [ -n "$emulator" ]; then
  cp "$emulator" "$root/qemu"
  run+=(/qemu)
fi
run+=(/verbatim)

version="$("${run[@]}" --version)"
features="$(sed -n 's/^features: //p' <<<"$version")"
case "${program##*/}" in
  *-small-*) [ -n "$features" ] || fail "$version" ;;
  *) grep -q 'documents.*postgres' <<<"$features" || fail "$version" ;;
esac
"${run[@]}" --help >/dev/null
"${run[@]}" check-config >/dev/null
"${run[@]}" import /lighthouse.vtt --video https://youtu.be/L1ghth0use1 --lang en --title 'The lighthouse' >/dev/null
text="$("${run[@]}" get https://youtu.be/L1ghth0use1 --format text)"
grep -q 'built by hand' <<<"$text" || fail "no transcript: $text"
"${run[@]}" serve --listen 127.0.0.1:0 >"$folder/out" 2>&1 &
server=$!
address="$(tests/server_address.sh "$folder/out" "$server")" || { cat "$folder/out" >&2; fail "no server"; }
get() { curl --silent --show-error --fail --compressed "$address/$1"; }
get readyz >/dev/null
get 'api/transcript?v=L1ghth0use1' | grep 'built by hand' >/dev/null || fail "no transcript over HTTP"
get watch/video_site/L1ghth0use1 | grep 'built by hand' >/dev/null || fail "no transcript on the page"
if grep -qw documents <<<"$features"; then
  get watch/video_site/L1ghth0use1/pdf >"$folder/pdf"
  [ "$(head -c 5 "$folder/pdf")" = "%PDF-" ] || fail "no PDF file"
fi
kill "$server"
wait "$server" || { cat "$folder/out" >&2; fail "the server ended with status $?"; }
server=""
echo "musl: $program: static, $(stat --format=%s "$program") bytes; features: $features"
