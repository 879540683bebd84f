import logging
import sys

from ._cli import YouTubeTranscriptCli


def main() -> None:
    logging.basicConfig()
    print(YouTubeTranscriptCli(sys.argv[1:]).run())


if __name__ == "__main__":
    main()
