-- Only the end of a build reads videos by their generation, and it reads all of them in order.
DROP INDEX IF EXISTS search_videos_by_generation;
