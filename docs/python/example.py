"""Example of the package, in notebook cells: `python example.py [ARCHIVE]`.

Proxies and certificates come from the environment.
"""

# %% One transcript
import asyncio
import sys

import verbatim_transcripts as vt

transcripts = vt.Transcripts(archive=sys.argv[1] if len(sys.argv) > 1 else None)
transcript = transcripts.get("https://www.youtube.com/watch?v=vb-tracks-0")
print(f"{transcript.title} ({transcript.language}, {transcript.source})")
for segment in transcript.segments[:2]:
    print(f"{segment.start:7.1f}  {segment.text}")

# %% The same as Markdown, and in another language
print(transcript.to_markdown())
print(transcripts.get("vb-tracks-0", lang="de").text)

# %% Many videos, with failures
LINKS = ["vb-tracks-0", "vb-asronly0", "vb-private0", "https://example.com"]
for result in transcripts.get_many(LINKS, progress=lambda done, _: print(f"{done} of {len(LINKS)}")):
    match result:
        case vt.BatchSuccess(link=link, transcript=found):
            print(f"{link}: {len(found)} segments, {'archived' if found.from_cache else 'fetched'}")
        case vt.BatchFailure(error=vt.TranscriptUnavailable(reason=reason) as error):
            print(f"{error} ({reason})")
        case vt.BatchFailure(link=link, error=error):
            print(f"{link}: {error}")



# %% In an event loop
async def get_both() -> None:
    first, second = await asyncio.gather(transcripts.aget("vb-tracks-0"), transcripts.aget("vb-french-0"))
    print(first.language, second.language)


asyncio.run(get_both())

# %% Search and totals of the archive
for hit in transcripts.search("sea"):
    print(hit.url, hit.text)
print(transcripts.stats())
transcripts.close()
