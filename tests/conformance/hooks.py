"""What a document of OpenAPI 3.1 cannot say about a look-up, told to the generator of requests.

A look-up takes exactly one of `url` and `v`, and not every text is the link of a video. Requests that are meant
to be valid are made so here; those that are meant to be wrong are left alone.
"""

import schemathesis

LINKS = (
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://youtu.be/dQw4w9WgXcQ?t=43",
    "youtube.com/shorts/aaaaaaaaaaa",
    "see (https://m.youtube.com/watch?v=bbbbbbbbbbb&list=x#y) for it",
    "https://www.tiktok.com/@scout2015/video/6718335390845095173",
    "https://vm.tiktok.com/ZMh3kTxyz/",
    "https://www.instagram.com/reel/C1abcdefghi/",
    "https://x.com/someone/status/1453746193042456576",
)


def name_one_video(case):
    query = dict(case.query or {})
    url = query.pop("url", None)
    if url is not None and "v" not in query:
        # The same text always gives the same link, so that a run can be repeated.
        query["url"] = url if url in LINKS else LINKS[sum(str(url).encode()) % len(LINKS)]
    elif "v" not in query:
        query["v"] = "dQw4w9WgXcQ"
    case.query = query


def is_look_up(operation):
    return operation.path == "/api/transcript"


@schemathesis.hook
def map_case(context, case):
    if is_look_up(case.operation) and case.meta is not None and not case.meta.generation.mode.is_negative:
        name_one_video(case)
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    # Each example of `url` comes together with one of `v`: both are tried, each by itself.
    if is_look_up(context.operation):
        for place, case in enumerate(examples):
            if case.query and "url" in case.query and place > 0:
                case.query = {name: value for name, value in case.query.items() if name != "v"}
            name_one_video(case)


@schemathesis.deserializer("text/plain", "text/markdown")
def text(context, response):
    return response.content.decode("utf-8")
