-- A track that goes asks whether a transcript is still of it: without this, each reads all transcripts.
CREATE INDEX transcripts_of_track ON transcripts (track);

-- What has ended is found, and forgotten, a few at a time.
CREATE INDEX absences_by_end ON absences (until);
CREATE INDEX leases_by_end ON leases (until);
