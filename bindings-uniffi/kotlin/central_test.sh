#!/usr/bin/env bash
# Puts the packed jar and AAR into an archive for Maven Central, with a key of the test, and checks its files and
# signatures. Arguments: the folders of the jar and of the AAR, and a work folder.
set -euo pipefail
jar="$(realpath "$1")"; aar="$(realpath "$2")"; work="$(realpath -m "$3")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
rm -rf "$work"
mkdir -p "$work/files"
cp "$jar"/* "$aar"/* "$work/files/"
# The path of the agent's socket must be short.
GNUPGHOME="$(mktemp -d)"
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
gpg --batch --quiet --passphrase '' --quick-generate-key tests@verbatim.invalid ed25519 sign never

sed -i '0,/<url>/s|<url>.*</url>|<url>https://example.invalid/verbatim</url>|' "$work/files/verbatim.pom"
if output="$("$here/central.sh" "$work/files" "$work/bundle.zip" 2>&1)"; then
  echo "an address that is not final must be refused" >&2
  exit 1
fi
grep -q "is not final" <<<"$output" || { echo "$output" >&2; exit 1; }
sed -i 's|//[a-z.]*\.invalid/|//example.org/|' "$work/files"/*.pom
"$here/central.sh" "$work/files" "$work/bundle.zip"
mkdir "$work/bundle"
(cd "$work/bundle" && jar --extract --file ../bundle.zip)
for pom in "$work"/bundle/dev/verbatim/*/*/*.pom; do
  for signature in "${pom%.pom}"*.asc; do
    gpg --batch --quiet --verify "$signature" "${signature%.asc}" 2>/dev/null
  done
done
python3 - "$work/bundle" <<'CHECK'
import hashlib, pathlib, sys
from xml.etree import ElementTree

name = {"pom": "http://maven.apache.org/POM/4.0.0"}
roots, versions = {}, {}
for pom in pathlib.Path(sys.argv[1]).glob("dev/verbatim/*/*/*.pom"):
    folder, artifact = pom.parent, pom.parent.parent.name
    root = roots[artifact] = ElementTree.parse(pom).getroot()
    text = lambda path: root.findtext(path, None, name)
    assert (text("pom:artifactId"), text("pom:version")) == (artifact, folder.name), pom
    # What Maven Central requires.
    required = ["name", "description", "url", "licenses/license/name", "developers/developer/name", "scm/url"]
    missing = [path for path in required if not text("/".join("pom:" + part for part in path.split("/")))]
    assert not missing, (pom, missing)
    kind = text("pom:packaging") or "jar"
    files = [f"{artifact}-{folder.name}{end}" for end in (".pom", f".{kind}", "-sources.jar", "-javadoc.jar")]
    expected = {file + end for file in files for end in ("", ".asc", ".md5", ".sha1")}
    assert {file.name for file in folder.iterdir()} == expected, pom
    for file in files:
        sum = (folder / f"{file}.sha1").read_text().strip()
        assert hashlib.sha1((folder / file).read_bytes()).hexdigest() == sum, file
    # The dependencies of apps, by their names without the platform, with their versions.
    properties = {f"${{{item.tag.partition('}')[2]}}}": item.text for item in root.findall("pom:properties/*", name)}
    versions[artifact] = {
        item.findtext("pom:artifactId", None, name).replace("-core-jvm", "").replace("-android", ""):
            properties.get(version := item.findtext("pom:version", None, name), version)
        for item in root.findall("pom:dependencies/pom:dependency", name)
        if item.find("pom:scope", name) is None
    }
assert sorted(roots) == ["verbatim-android", "verbatim-jvm"], roots
assert versions["verbatim-android"] == versions["verbatim-jvm"], versions
CHECK
